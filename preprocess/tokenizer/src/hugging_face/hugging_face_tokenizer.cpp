// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/hugging_face_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/io/file_ops.hpp>

#include "composed/composed_tokenizer.hpp"
#include "hugging_face/identity.hpp"
#include "hugging_face/tokenizer_file.hpp"
#include "hugging_face/tokenizer_folder.hpp"
#include "messages/text_file.hpp"

namespace millrace::tokenizer::detail {
namespace {

const std::string type_line = "type HuggingFaceTokenizer\n";

// The text of a file, or an empty text if the file does not exist.
std::string text_if_there(const std::filesystem::path& path) {
  if (!io::is_there(path)) return {};
  return with_text_of(path, [](std::string_view text) { return std::string(text); });
}

std::string name_of(const char* file, std::string_view text) {
  return std::string(file) + " " + formats::sha256_hex(text) + "\n";
}

std::unique_ptr<tokenizer> make_of_folder(const std::filesystem::path& folder,
                                          const hugging_face_options& options) {
  if (!io::is_there(folder / "tokenizer.json")) {
    throw config_error(folder.string() + ": there is no tokenizer.json in the folder");
  }
  const std::string config = text_if_there(folder / "tokenizer_config.json");
  const std::string map = text_if_there(folder / "special_tokens_map.json");
  const std::string added = text_if_there(folder / "added_tokens.json");
  const std::string model = text_if_there(folder / "config.json");
  // A missing config has the same effect as an empty one.
  const folder_texts texts = {config.empty() ? "{}" : std::string_view(config), map, added, model};
  return with_text_of(folder / "tokenizer.json", [&](std::string_view text) {
    tokenizer_file file(text);
    folder_answer answer;
    std::string identity = type_line + identity_of(options) + name_of("file", text);
    try {
      answer = apply_config(file, texts, options.include_special_tokens);
    } catch (const format_error& e) {
      throw e.in(folder / (e.path().empty() ? "tokenizer_config.json" : e.path()));
    }
    // Leave out added_tokens.json, because it never adds a token that tokenizer.json lacks.
    identity += name_of("config", config) + name_of("map", map);
    // From config.json, include only the class, because nothing else in that file matters.
    if (answer.opened_as.of_model) identity += "class " + answer.opened_as.name + "\n";
    file.add_special_tokens(options.special_tokens);
    tokenizer_parts parts = file.make_parts(options);
    parts.eod = answer.eod;
    parts.fingerprint = formats::sha256_hex(identity);
    return std::unique_ptr<tokenizer>(std::make_unique<composed_tokenizer>(std::move(parts)));
  });
}

std::unique_ptr<tokenizer> make_of_file(const std::filesystem::path& path,
                                        const hugging_face_options& options) {
  return with_text_of(path, [&](std::string_view text) {
    tokenizer_file file(text);
    file.add_special_tokens(options.special_tokens);
    tokenizer_parts parts = file.make_parts(options);
    parts.fingerprint =
        formats::sha256_hex(type_line + identity_of(options) + name_of("file", text));
    return std::unique_ptr<tokenizer>(std::make_unique<composed_tokenizer>(std::move(parts)));
  });
}

bool may_end_documents(std::string_view token) {
  constexpr std::array<std::string_view, 8> ends = {
      "end_of_text",     "endoftext",      "eos", "</s>", "<|end|>", "eod",
      "end_of_document", "end▁of▁sentence"};
  std::string word(token);
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::any_of(ends, [&](auto end) { return word.find(end) != word.npos; });
}

// Suggests values for --eod-token: tokens of the file whose names look like an end of document.
std::string eod_candidates(const std::filesystem::path& path) {
  constexpr std::size_t most = 3;
  std::string flags;
  std::size_t count = 0;
  with_text_of(path, [&](std::string_view text) {
    tokenizer_file file(text);
    for (const added_token& token : file.added().tokens()) {
      if (count == most || !may_end_documents(token.content)) continue;
      flags += (count++ == 0 ? "--eod-token '" : "' or '") + token.content;
    }
  });
  return flags.empty() ? "--eod-token TOKEN" : flags + "'";
}

}  // namespace

std::string advice_on_eod(const std::filesystem::path& file_or_folder) {
  if (!io::is_folder(file_or_folder)) {
    return file_or_folder.string() +
           " alone names no token that ends a document; give its folder, if a "
           "tokenizer_config.json is there, or pass " +
           eod_candidates(file_or_folder);
  }
  const std::string config = (file_or_folder / "tokenizer_config.json").string();
  return (io::is_there(config) ? config + " names no eos_token; add it there"
                               : "tokenizer_config.json is missing in " + file_or_folder.string() +
                                     "; put it there") +
         " or pass " + eod_candidates(file_or_folder / "tokenizer.json");
}

std::unique_ptr<tokenizer> make_hugging_face_tokenizer(const std::filesystem::path& file_or_folder,
                                                       const hugging_face_options& options) {
  return io::is_folder(file_or_folder) ? make_of_folder(file_or_folder, options)
                                       : make_of_file(file_or_folder, options);
}

}  // namespace millrace::tokenizer::detail
