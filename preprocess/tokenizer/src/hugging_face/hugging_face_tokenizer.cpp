// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/hugging_face_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/formats/detail/utf8.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/tokenizer/detail/chat_folder.hpp>

#include "core/composed_tokenizer.hpp"
#include "hugging_face/tokenizer_file.hpp"
#include "hugging_face/tokenizer_folder.hpp"
#include "text/text_file.hpp"
#include "text/token_index.hpp"

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

void expect_tokenizer_in(const std::filesystem::path& folder) {
  if (io::is_there(folder / "tokenizer.json")) return;
  throw config_error(folder.string() + ": there is no tokenizer.json in the folder");
}

// The files of a folder beside tokenizer.json. The texts of missing files are empty.
struct folder_files {
  explicit folder_files(const std::filesystem::path& in)
      : folder(in),
        config(text_if_there(folder / "tokenizer_config.json")),
        map(text_if_there(folder / "special_tokens_map.json")),
        added(text_if_there(folder / "added_tokens.json")),
        model(text_if_there(folder / "config.json")) {}

  folder_answer apply_to(tokenizer_file& file, bool special_tokens_count) const {
    try {
      return apply_config(file, {config_or_empty(), map, added, model}, special_tokens_count);
    } catch (const format_error& e) {
      throw e.in(folder / (e.path().empty() ? "tokenizer_config.json" : e.path()));
    }
  }
  // A missing config has the same effect as an empty one.
  std::string_view config_or_empty() const {
    return config.empty() ? std::string_view("{}") : std::string_view(config);
  }

  std::filesystem::path folder;
  std::string config;
  std::string map;
  std::string added;
  std::string model;
};

std::unique_ptr<tokenizer> make_of_folder(const std::filesystem::path& folder,
                                          const hugging_face_options& options) {
  expect_tokenizer_in(folder);
  const folder_files files(folder);
  return with_text_of(folder / "tokenizer.json", [&](std::string_view text) {
    tokenizer_file file(text);
    std::string identity = type_line + identity_of(options) + name_of("file", text);
    const folder_answer answer = files.apply_to(file, options.include_special_tokens);
    // Leave added_tokens.json out of the identity, because it never adds a token that
    // tokenizer.json lacks.
    identity += name_of("config", files.config) + name_of("map", files.map);
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

namespace {

constexpr std::array<std::string_view, 5> special_tokens = {"[UNK]", "[SEP]", "[PAD]", "[CLS]",
                                                            "[MASK]"};

// Returns the tokens <extra_id_0> to <extra_id_99>.
std::vector<std::string> extra_ids() {
  std::vector<std::string> tokens;
  tokens.reserve(100);
  for (int i = 0; i < 100; ++i) tokens.push_back("<extra_id_" + std::to_string(i) + ">");
  return tokens;
}

// The lines of a text. A line ends with LF, CRLF or CR; the last line may have no line end.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(text.starts_with("\r\n") ? 2 : std::min<std::size_t>(text.size(), 1));
  }
  return lines;
}

void check_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = formats::utf8_sequence_bytes(text.substr(at));
    if (size == 0) throw format_error(at, "the vocabulary is not UTF-8");
    at += size;
  }
}

token_index index_of(std::string_view text, const std::vector<std::string_view>& lines) {
  token_index index(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!index.add(lines[i], static_cast<std::int32_t>(i))) {
      throw format_error(static_cast<std::size_t>(lines[i].data() - text.data()),
                         "line " + std::to_string(i + 1) + ": token " +
                             formats::in_quotes(lines[i]) + " occurs twice");
    }
  }
  for (const std::string_view token : special_tokens) {
    if (index.find(token) == token_index::none) {
      throw format_error(text.size(), "the vocabulary lacks " + std::string(token));
    }
  }
  return index;
}

void write_added(formats::json_writer& json, std::string_view content, std::int32_t id) {
  json.open('{').key("id").value(id).key("content").value(content);
  for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) {
    json.key(flag).value(false);
  }
  json.key("special").value(true).close('}');
}

// Returns the text of a tokenizer.json that describes the same tokenizer as the lines of a
// vocab.txt.
std::string described(const std::vector<std::string_view>& lines, const token_index& index,
                      bool lower_case) {
  formats::json_writer json;
  const auto begin_component = [&](const char* name, const char* type) {
    json.key(name).open('{').key("type").value(type);
  };
  json.open('{').key("version").value("1.0").key("added_tokens").open('[');
  for (const std::string_view token : special_tokens) write_added(json, token, index.find(token));
  json.close(']');

  begin_component("normalizer", "BertNormalizer");
  json.key("clean_text").value(true).key("handle_chinese_chars").value(true);
  json.key("strip_accents").null().key("lowercase").value(lower_case).close('}');
  begin_component("pre_tokenizer", "BertPreTokenizer");
  json.close('}');

  begin_component("post_processor", "BertProcessing");
  json.key("cls").open('[').value("[CLS]").value(index.find("[CLS]")).close(']');
  json.key("sep").open('[').value("[SEP]").value(index.find("[SEP]")).close(']').close('}');
  begin_component("decoder", "WordPiece");
  json.key("prefix").value("##").key("cleanup").value(true).close('}');

  begin_component("model", "WordPiece");
  json.key("unk_token").value("[UNK]").key("continuing_subword_prefix").value("##");
  json.key("max_input_chars_per_word").value(100).key("vocab").open('{');
  for (std::size_t i = 0; i < lines.size(); ++i) json.key(lines[i]).value(i);
  json.close('}').close('}').close('}');
  return json.text();
}

}  // namespace

std::unique_ptr<tokenizer> make_bert_word_piece_tokenizer(const std::filesystem::path& vocab_file,
                                                          bool lower_case,
                                                          const hugging_face_options& options) {
  return with_text_of(vocab_file, [&](std::string_view text) {
    check_utf8(text);
    const auto lines = lines_of(text);
    const token_index index = index_of(text, lines);
    const std::string json = described(lines, index, lower_case);
    tokenizer_file file(json);
    file.add_special_tokens(extra_ids());
    file.add_special_tokens(options.special_tokens);
    tokenizer_parts parts = file.make_parts(options);
    parts.eod = index.find("[SEP]");
    parts.fingerprint = formats::sha256_hex(
        std::string("type ") + (lower_case ? "BertWordPieceLowerCase" : "BertWordPieceCase") +
        "\n" + identity_of(options) + "extra_ids 100\nvocab_file " + formats::sha256_hex(text) +
        "\n");
    return std::unique_ptr<tokenizer>(std::make_unique<composed_tokenizer>(std::move(parts)));
  });
}

}  // namespace millrace::tokenizer::detail

namespace millrace::tokenizer {
namespace {

using detail::text_if_there;
using named_template = chat_folder::named_template;

// The templates of tokenizer_config.json: a text, or a list of texts with names.
std::vector<named_template> templates_of_config(const detail::json_node& config,
                                                const std::filesystem::path& path) {
  const auto given = config.find("chat_template");
  if (!given) return {};
  if (given->is_string()) return {{"default", path, std::string(given->string("chat_template"))}};
  std::vector<named_template> all;
  std::size_t index = 0;
  for (const auto element : given->array("chat_template")) {
    const detail::json_node each(*given, element, index++);
    all.push_back({std::string(each.at("name").string("the name of a template")), path,
                   std::string(each.at("template").string("a template"))});
  }
  return all;
}

std::vector<named_template> templates_of_files(const std::filesystem::path& folder) {
  std::vector<named_template> all;
  const auto take = [&](std::string name, const std::filesystem::path& path) {
    all.push_back({std::move(name), path, text_if_there(path)});
  };
  const auto usual = folder / "chat_template.jinja";
  if (io::is_there(usual)) take("default", usual);
  const auto more = folder / "additional_chat_templates";
  if (!io::is_folder(more)) return all;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(more)) {
    if (entry.path().extension() == ".jinja") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  for (const auto& path : paths) take(path.stem().string(), path);
  return all;
}

}  // namespace

const chat_folder::named_template* chat_folder::find(const std::string& name) const noexcept {
  const auto found = std::ranges::find(templates, name, &named_template::name);
  return found == templates.end() ? nullptr : &*found;
}

chat_folder read_chat_folder(const std::filesystem::path& folder) {
  detail::expect_tokenizer_in(folder);
  const detail::folder_files files(folder);
  chat_folder chat;
  detail::with_text_of(folder / "tokenizer.json", [&](std::string_view text) {
    detail::tokenizer_file file(text);
    chat.named_tokens = files.apply_to(file, false).names;
    for (const detail::added_token& token : file.added().tokens()) {
      if (token.special) chat.special_tokens.push_back(token.content);
    }
  });
  chat.templates = templates_of_files(folder);
  if (!chat.templates.empty()) return chat;
  const auto path = folder / "tokenizer_config.json";
  try {
    const detail::json_document config(files.config_or_empty());
    chat.templates = templates_of_config(detail::json_node(config), path);
  } catch (const format_error& e) {
    throw e.in(path);
  }
  return chat;
}

}  // namespace millrace::tokenizer
