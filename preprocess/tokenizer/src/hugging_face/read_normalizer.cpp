// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/read_normalizer.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

#include "hugging_face/json_component.hpp"
#include "hugging_face/regex_components.hpp"
#include "messages/in_quotes.hpp"
#include "normalize/normalizers.hpp"
#include "regex/pattern_tree.hpp"
#include "text/base64.hpp"

namespace millrace::tokenizer::detail {
namespace {

normalizer_pointer read(const json_component& json);

normalizer_pointer read_bert(const json_component& json) {
  json.expect_only({"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  const bool lowercase = json.flag("lowercase");
  return make_bert_normalizer(
      {.clean_text = json.flag("clean_text"),
       .handle_chinese_chars = json.flag("handle_chinese_chars"),
       .strip_accents = json.optional_flag("strip_accents").value_or(lowercase),
       .lowercase = lowercase});
}

normalizer_pointer read_replace(const json_component& json) {
  json.expect_only({"pattern", "content"});
  const auto pattern = json.pattern_of("pattern");
  std::string content(json.text("content"));
  if (pattern.is_regex) {
    try {
      return make_regex_replace(pattern.text, std::move(content));
    } catch (const pattern_error& e) {
      json.fail_at("pattern.Regex", e.what());
    }
  }
  // In Hugging Face, an empty pattern matches everywhere, and later steps then duplicate the
  // inserted text.
  if (pattern.text.empty()) json.fail_at("pattern", "is empty, which is not supported");
  return make_replace(std::string(pattern.text), std::move(content));
}

normalizer_pointer read_prepend(const json_component& json) {
  json.expect_only({"prepend"});
  const std::string_view prefix = json.text("prepend");
  // In Hugging Face, later steps duplicate a character if the prefix is empty.
  if (prefix.empty()) json.fail_at("prepend", "is empty, which is not supported");
  return make_prepend(std::string(prefix));
}

normalizer_pointer read_precompiled(const json_component& json) {
  constexpr const char* map = "precompiled_charsmap";
  json.expect_only({map});
  std::string blob;
  if (!decode_base64(json.text(map), blob)) json.fail_at(map, "is not base64");
  try {
    return make_precompiled(charsmap(blob, 0));
  } catch (const format_error& e) {
    json.fail_at(map, e.what());  // the offset in the message refers to the decoded bytes
  }
}

normalizer_pointer read_sequence(const json_component& json) {
  json.expect_only({"normalizers"});
  std::vector<normalizer_pointer> steps;
  for (const json_component& part : json.components("normalizers")) steps.push_back(read(part));
  return make_normalizer_sequence(std::move(steps));
}

// Creates a normalizer of a type without fields. Returns null for any other type.
normalizer_pointer normalizer_without_fields(std::string_view type) {
  if (type == "NFC") return make_normal_form(normal_form::nfc);
  if (type == "NFD") return make_normal_form(normal_form::nfd);
  if (type == "NFKC") return make_normal_form(normal_form::nfkc);
  if (type == "NFKD") return make_normal_form(normal_form::nfkd);
  if (type == "Lowercase") return make_lowercase();
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Nmt") return make_nmt();
  if (type == "ByteLevel") return make_byte_level_normalizer();
  return nullptr;
}

normalizer_pointer read(const json_component& json) {
  const std::string_view type = json.type();
  if (type == "BertNormalizer") return read_bert(json);
  if (type == "Replace") return read_replace(json);
  if (type == "Prepend") return read_prepend(json);
  if (type == "Sequence") return read_sequence(json);
  if (type == "Strip") {
    json.expect_only({"strip_left", "strip_right"});
    return make_strip(json.flag("strip_left"), json.flag("strip_right"));
  }
  if (normalizer_pointer plain = normalizer_without_fields(type)) {
    json.expect_only({});
    return plain;
  }
  if (type == "Precompiled") return read_precompiled(json);
  json.fail_at("type", "unknown normalizer " + in_quotes(type));
}

}  // namespace

std::unique_ptr<const normalizer> read_normalizer(const json_node& json, const std::string& path) {
  if (json.is_null()) return nullptr;
  return read(json_component(json, path));
}

}  // namespace millrace::tokenizer::detail
