// SPDX-License-Identifier: Apache-2.0
#include "given_texts.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "dataset_list.hpp"

namespace millrace::inspect {

namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& word) {
  std::error_code ignored;
  return fs::is_regular_file(word, ignored) && fs::path(word).extension() != ".idx";
}

void add_dataset(const std::string& prefix, given_texts& all) {
  const dataset::indexed_dataset data(prefix, {.check = dataset::check_level::full});
  for (std::int64_t d = 0; d < data.document_count(); ++d) {
    const dataset::token_view tokens = data.document_tokens(d);
    auto& ids = all.ids.emplace_back(static_cast<std::size_t>(tokens.size()));
    for (std::int64_t i = 0; i < tokens.size(); ++i) ids[static_cast<std::size_t>(i)] = tokens[i];
    all.names.push_back(fmt::format("{}, document {}", command::one_line(prefix), d));
  }
}

/// The member "text" of a line of JSON.
std::string text_of_json(const std::string& line) {
  const auto json = dataset::read_python_json(line);
  const auto* const member = json.is_object() ? json.find("text") : nullptr;
  const auto text = member == nullptr ? std::nullopt : member->text();
  if (!text) throw format_error(0, "expected a JSON object with a string \"text\"");
  return *text;
}

void add_file(const std::string& path, tokenizer::encoder& encoder, given_texts& all) {
  const io::unique_fd file = io::open_read_only(path);  // throws io_error with the reason
  std::ifstream in(path, std::ios::binary);
  const auto extension = fs::path(path).extension();
  const bool is_json = extension == ".jsonl" || extension == ".json";
  std::int64_t number = 0;
  std::uint64_t offset = 0;
  tokenizer::id_buffer ids;
  for (std::string line; std::getline(in, line); offset += line.size() + 1) {
    ++number;
    std::string text = line;
    if (text.ends_with('\r')) text.pop_back();
    if (text.empty()) continue;
    try {
      if (is_json) text = text_of_json(text);
      ids.clear();
      if (const auto fault = encoder.encode(text, ids)) throw format_error(0, fault->what);
    } catch (const format_error& e) {
      throw format_error(path, offset, fmt::format("line {}: {}", number, e.problem()));
    }
    all.ids.emplace_back(ids.ids().begin(), ids.ids().end());
    all.names.push_back(fmt::format("{}, line {}", command::one_line(path), number));
  }
  if (in.bad()) throw io_error(path, "read", EIO);
}

}  // namespace

given_texts read_texts(const std::vector<std::string>& words,
                       const tokenizer::tokenizer* tokenizer) {
  given_texts all;
  std::unique_ptr<tokenizer::encoder> encoder;
  for (const std::string& word : words) {
    if (!is_file(word)) {
      if (!fs::exists(word) && !fs::exists(word + ".idx") && word.find_first_of("*?[") == word.npos)
        throw config_error(command::one_line(word) + ": there is no such file and no such dataset");
      for (const std::string& prefix : dataset_prefixes(std::vector{word}))
        add_dataset(prefix, all);
      continue;
    }
    if (tokenizer == nullptr) {
      throw config_error(command::one_line(word) +
                         ": the tokenizer is unknown, so this text has no ids; pass "
                         "--tokenizer-type and the files that the dataset was made with");
    }
    if (!encoder) encoder = tokenizer->make_encoder();
    add_file(word, *encoder, all);
  }
  if (all.ids.empty()) throw config_error("--contamination: the files have no text");
  return all;
}

}  // namespace millrace::inspect
