// SPDX-License-Identifier: Apache-2.0
//
// Parses records as preprocess_data does, and prints the texts that it finds. Tests compare these
// texts with the results of another parser:
//
//   parse_lines [--exact | --giant] [--paths] KEY... < RECORDS
//
// With --paths, KEY is a path of keys, separated by dots. With --giant, the program reads each
// record from a file, through a window of 16 to 65 bytes.
//
// Each record is given as its size (four bytes, little-endian), followed by its bytes. The program
// prints one line per record:
//
//   ok LONE_SURROGATES COUNT:HEX,HEX ...     for each key, the number of its texts, then the texts
//   KIND OFFSET WHAT                         for a bad record, its kind, byte offset and message
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/io/file_ops.hpp>

#include "record/exact_json.hpp"
#include "record/giant_scanner.hpp"
#include "record/giant_texts.hpp"
#include "record/record_parser.hpp"
#include "record/text_key.hpp"

namespace {

using namespace millrace::preprocess;

constexpr const char* kind_names[fault_kinds] = {"invalid_utf8", "invalid_json", "not_an_object",
                                                 "missing_key",  "wrong_type",   "not_encodable"};

void append_hex(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    const auto value = static_cast<unsigned char>(c);
    out += "0123456789abcdef"[value >> 4];
    out += "0123456789abcdef"[value & 15];
  }
}

/// Gives the parser for lines that do not fit into memory the same interface as the other parsers.
class giant_parser {
 public:
  explicit giant_parser(std::span<const text_key> keys) : keys_(keys.begin(), keys.end()) {}

  std::optional<record_fault> parse(std::string_view line) {
    if (::ftruncate(fd_.get(), 0) != 0) throw std::runtime_error("ftruncate failed");
    // Surround the line with other bytes, which the parser must not read.
    const std::string bytes = "\xFF}\"" + std::string(line) + "\"\\u12\xFF";
    millrace::io::pwrite_all(fd_, std::as_bytes(std::span(bytes)), 0, "memfd");
    const line_range range{fd_, "memfd", 3, 3 + line.size()};
    const std::size_t window = line_window::least_bytes + records_++ % 50;
    std::vector<giant_value> values;
    if (auto fault = scan_giant_line(range, keys_, window, values)) return fault;
    texts_.clear();
    views_.clear();
    lone_surrogates_ = 0;
    for (const giant_value& value : values) {
      giant_texts texts(range, value, window);
      std::vector<std::string>& found = texts_.emplace_back();
      while (texts.next()) found.push_back(all_of(texts));
      lone_surrogates_ += texts.lone_surrogates();
      views_.emplace_back(found.begin(), found.end());
    }
    return std::nullopt;
  }
  std::span<const std::string_view> texts(std::size_t key) const { return views_[key]; }
  std::int64_t lone_surrogates() const { return lone_surrogates_; }

 private:
  static std::string all_of(giant_texts& texts) {
    text_bytes bytes;
    while (texts.read(bytes)) {
    }
    return {bytes.data(), bytes.size};
  }

  std::vector<text_key> keys_;
  millrace::io::unique_fd fd_{::memfd_create("parse_lines", MFD_CLOEXEC)};
  std::size_t records_ = 0;
  std::vector<std::vector<std::string>> texts_;
  std::vector<std::vector<std::string_view>> views_;
  std::int64_t lone_surrogates_ = 0;
};

template <class Parser>
void print(Parser& parser, std::string_view line, std::size_t keys) {
  std::string out;
  if (const auto fault = parser.parse(line)) {
    out = kind_names[static_cast<std::size_t>(fault->kind)];
    out += ' ' + std::to_string(fault->offset_bytes) + ' ' + fault->what;
  } else {
    out = "ok " + std::to_string(parser.lone_surrogates());
    for (std::size_t key = 0; key < keys; ++key) {
      const auto texts = parser.texts(key);
      out += ' ' + std::to_string(texts.size()) + ':';
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (i > 0) out += ',';
        append_hex(out, texts[i]);
      }
    }
  }
  out += '\n';
  std::fwrite(out.data(), 1, out.size(), stdout);
}

template <class Parser>
int run(const std::vector<text_key>& keys, std::size_t padding) {
  static_assert(std::endian::native == std::endian::little);
  Parser parser{std::span<const text_key>(keys)};
  std::uint32_t size = 0;
  for (unsigned record = 0; std::fread(&size, sizeof size, 1, stdin) == 1; ++record) {
    // Allocate a separate block for each record, so that a sanitizer reports each read outside the
    // block. The padding after the record consists of bytes that a parser might mistake for part of
    // the line.
    const auto block = std::make_unique_for_overwrite<char[]>(size + padding);
    std::memset(block.get() + size, "}\"1\\ \xFF],"[record % 8], padding);
    if (size > 0 && std::fread(block.get(), size, 1, stdin) != 1) {
      std::cerr << "parse_lines: the last record is cut short\n";
      return 1;
    }
    print(parser, std::string_view(block.get(), size), keys.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> names(argv + 1, argv + argc);
  const auto take = [&](const char* flag) {
    const bool found = !names.empty() && names.front() == flag;
    if (found) names.erase(names.begin());
    return found;
  };
  const bool giant = take("--giant");
  const bool exact = !giant && take("--exact");
  const bool paths = take("--paths");
  if (names.empty()) {
    std::cerr << "usage: parse_lines [--exact | --giant] [--paths] KEY... < RECORDS\n";
    return 2;
  }
  std::vector<text_key> keys;
  for (const std::string& name : names) keys.push_back(paths ? key_of_path(name) : plain_key(name));
  if (giant) return run<giant_parser>(keys, 0);
  return exact ? run<exact_json>(keys, 0) : run<record_parser>(keys, record_parser::padding_bytes);
} catch (const std::exception& e) {
  std::cerr << "parse_lines: " << e.what() << '\n';
  return 1;
}
