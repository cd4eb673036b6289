// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "support/paths.hpp"
#include "text/byte_alphabet.hpp"

namespace millrace::test {

/// A GPT-2 vocabulary for tests: all 256 single bytes, where byte b has id b, followed by the
/// test's own tokens.
class small_vocabulary {
 public:
  using tokens = std::vector<std::pair<std::string, std::int64_t>>;

  static tokens bytes() {
    tokens all;
    for (int byte = 0; byte < 256; ++byte) {
      all.emplace_back(tokenizer::detail::spelling_of(std::string(1, static_cast<char>(byte))),
                       byte);
    }
    return all;
  }

  /// Returns all 256 single bytes, followed by the tokens `more`, whose ids start at 256.
  static tokens bytes_and(const std::vector<std::string>& more) {
    tokens all = bytes();
    for (const std::string& token : more) {
      all.emplace_back(token, static_cast<std::int64_t>(all.size()));
    }
    return all;
  }

  static std::string json(const tokens& all) {
    std::string text = "{";
    for (const auto& [token, id] : all) {
      if (text.size() > 1) text += ", ";
      text += '"';
      for (const char c : token) {
        if (c == '"' || c == '\\') text += '\\';
        text += c;
      }
      text += "\": " + std::to_string(id);
    }
    return text + "}";
  }

  /// Writes vocab.json and merges.txt with the given contents.
  small_vocabulary(std::string_view vocab_json, std::string_view merges_txt) {
    write_text(folder_ / "vocab.json", vocab_json);
    write_text(folder_ / "merges.txt", merges_txt);
  }
  small_vocabulary(const tokens& all, std::string_view merges_txt)
      : small_vocabulary(json(all), merges_txt) {}

  tokenizer::tokenizer_options options() const {
    tokenizer::tokenizer_options options;
    options.type = "GPT2BPETokenizer";
    options.vocab_file = folder_ / "vocab.json";
    options.merge_file = folder_ / "merges.txt";
    return options;
  }
  std::unique_ptr<tokenizer::tokenizer> load() const {
    return tokenizer::make_tokenizer(options());
  }

 private:
  temp_folder folder_;
};

}  // namespace millrace::test
