// SPDX-License-Identifier: Apache-2.0
// Applies a normalizer and a pre-tokenizer to texts from stdin, for the scripts of property/. The
// input is a sequence of requests; each gets one answer. All numbers are little-endian uint32.
// `(size, bytes)` means a number of bytes, followed by the bytes.
//
// Request:  {"normalizer": ..., "pre_tokenizer": ...} (size, bytes); the number of texts; each text
//           (size, bytes)
// Answer if both components are valid: 0; then, for each text, the number of its pieces and each
//           piece (size, bytes). Without a pre-tokenizer, the normalized text is the only piece. If
//           a text cannot be encoded, its number of pieces is 0xFFFFFFFF, and no piece follows.
// Answer if a component is invalid: 1; then the error message (size, bytes)
#include <cstdint>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "core/interfaces.hpp"
#include "hugging_face/json_node.hpp"
#include "hugging_face/read_components.hpp"

namespace {

namespace detail = millrace::tokenizer::detail;

bool read(std::uint32_t& value) {
  return static_cast<bool>(std::cin.read(reinterpret_cast<char*>(&value), sizeof value));
}

std::uint32_t need_number() {
  std::uint32_t value = 0;
  if (!read(value)) throw std::runtime_error("the input ends inside a request");
  return value;
}

std::string need_text(std::uint32_t size) {
  std::string text(size, '\0');
  if (!std::cin.read(text.data(), static_cast<std::streamsize>(size))) {
    throw std::runtime_error("the input ends inside a text");
  }
  return text;
}

void write(std::uint32_t value) {
  std::cout.write(reinterpret_cast<const char*>(&value), sizeof value);
}

void write(std::string_view text) {
  write(static_cast<std::uint32_t>(text.size()));
  std::cout.write(text.data(), static_cast<std::streamsize>(text.size()));
}

struct components {
  std::unique_ptr<const detail::normalizer> normal;
  std::unique_ptr<const detail::pre_tokenizer> pre;
};

components read_components(const std::string& json) {
  const detail::json_document document(json);
  const detail::json_node root(document);
  const auto normal = root.find("normalizer");  // empty if the value is null
  const auto pre = root.find("pre_tokenizer");
  return {normal ? detail::read_normalizer(*normal) : nullptr,
          pre ? detail::read_pre_tokenizer(*pre) : nullptr};
}

void answer_text(const components& parts, const std::string& text) {
  std::string buffer;
  std::string_view normal = text;
  detail::piece_list pieces;
  try {
    if (parts.normal) normal = parts.normal->normalize(text, buffer);
    if (parts.pre) parts.pre->split({normal, true}, pieces);
  } catch (const detail::unencodable_text&) {
    write(0xFFFFFFFF);
    return;
  }
  if (!parts.pre) {
    write(1);
    write(normal);
    return;
  }
  write(static_cast<std::uint32_t>(pieces.ends.size()));
  std::size_t begin = 0;
  for (const std::size_t end : pieces.ends) {
    write(std::string_view(pieces.text).substr(begin, end - begin));
    begin = end;
  }
}

void answer(std::uint32_t size) {
  const std::string json = need_text(size);
  std::vector<std::string> texts(need_number());
  for (std::string& text : texts) text = need_text(need_number());
  components parts;
  try {
    parts = read_components(json);
  } catch (const millrace::format_error& e) {
    write(1);
    write(std::string_view(e.what()));
    return;
  }
  write(0);
  for (const std::string& text : texts) answer_text(parts, text);
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  try {
    for (std::uint32_t size = 0; read(size);) {
      answer(size);
      std::cout.flush();
    }
    return std::cout ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "apply_components: " << e.what() << '\n';
    return 1;
  }
}
