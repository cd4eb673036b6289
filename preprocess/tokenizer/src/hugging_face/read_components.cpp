// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/read_components.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "normalize/normalizers.hpp"
#include "pre_tokenize/stages.hpp"
#include "regex/pattern_tree.hpp"
#include "regex/regex.hpp"
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
  json.fail_at("type", "unknown normalizer " + formats::in_quotes(type));
}

}  // namespace

std::unique_ptr<const normalizer> read_normalizer(const json_node& json, const std::string& path) {
  if (json.is_null()) return nullptr;
  return read(json_component(json, path));
}

namespace {

stage_pointer read_byte_level(const json_component& json) {
  json.expect_only({"add_prefix_space", "trim_offsets", "use_regex"});
  (void)json.flag("trim_offsets");  // affects only offsets, not ids
  return make_byte_level_stage(json.flag("add_prefix_space"), json.flag_or("use_regex", true));
}

stage_pointer read_metaspace(const json_component& json) {
  json.expect_only({"replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  (void)json.optional_text("str_rep");  // in old files; has no effect in Hugging Face
  const std::string_view name = json.optional_text("prepend_scheme").value_or("always");
  prepend_scheme scheme = prepend_scheme::always;
  if (name == "first") {
    scheme = prepend_scheme::first;
  } else if (name == "never") {
    scheme = prepend_scheme::never;
  } else if (name != "always") {
    json.fail_at("prepend_scheme",
                 "is " + formats::in_quotes(name) + ", expected 'always', 'first' or 'never'");
  }
  if (json.optional_flag("add_prefix_space") == false && scheme != prepend_scheme::never) {
    json.fail_at("add_prefix_space",
                 "is false, which contradicts a prepend_scheme of " + formats::in_quotes(name));
  }
  return make_metaspace_stage(json.character("replacement"), scheme,
                              json.optional_flag("split").value_or(true));
}

split_behavior behavior_of(const json_component& json) {
  const std::string_view name = json.text("behavior");
  const auto behavior = split_behavior_of(name);
  if (behavior) return *behavior;
  json.fail_at("behavior", "is " + formats::in_quotes(name) +
                               ", expected 'Removed', 'Isolated', 'MergedWithPrevious', "
                               "'MergedWithNext' or 'Contiguous'");
}

stage_pointer read_split(const json_component& json) {
  json.expect_only({"pattern", "behavior", "invert"});
  const auto pattern = json.pattern_of("pattern");
  const split_behavior behavior = behavior_of(json);
  const bool invert = json.flag("invert");
  if (pattern.is_regex) {
    try {
      return make_regex_stage(pattern.text, behavior, invert);
    } catch (const pattern_error& e) {
      json.fail_at("pattern.Regex", e.what());
    }
  }
  if (pattern.text.empty()) json.fail_at("pattern", "is empty, which is not supported");
  return make_split_stage(std::string(pattern.text), behavior, invert);
}

stage_pointer read_punctuation(const json_component& json) {
  json.expect_only({"behavior"});
  return make_punctuation_stage(json.optional_text("behavior") ? behavior_of(json)
                                                               : split_behavior::isolated);
}

stage_pointer read_fixed_length(const json_component& json) {
  json.expect_only({"length"});
  const std::size_t length = json.size_or("length", 5);
  if (length == 0) json.fail_at("length", "is 0, expected 1 or more");
  return make_fixed_length_stage(length);
}

// Creates a stage of a type without fields. Returns null for any other type.
stage_pointer stage_without_fields(std::string_view type) {
  if (type == "BertPreTokenizer") return make_bert_stage();
  if (type == "Whitespace") return make_whitespace_stage();
  if (type == "WhitespaceSplit") return make_whitespace_split_stage();
  if (type == "UnicodeScripts") return make_scripts_stage();
  return nullptr;
}

stage_pointer read_stage(const json_component& json) {
  const std::string_view type = json.type();
  if (type == "ByteLevel") return read_byte_level(json);
  if (type == "Metaspace") return read_metaspace(json);
  if (type == "Split") return read_split(json);
  if (type == "Punctuation") return read_punctuation(json);
  if (type == "FixedLength") return read_fixed_length(json);
  if (type == "CharDelimiterSplit") {
    json.expect_only({"delimiter"});
    return make_delimiter_stage(json.character("delimiter"));
  }
  if (type == "Digits") {
    json.expect_only({"individual_digits"});
    return make_digits_stage(json.flag("individual_digits"));
  }
  if (stage_pointer plain = stage_without_fields(type)) {
    json.expect_only({});
    return plain;
  }
  json.fail_at("type", "unknown pre-tokenizer " + formats::in_quotes(type));
}

// Reads a component into `stages`. Flattens nested sequences.
void read_into(const json_component& json, std::vector<stage_pointer>& stages) {
  if (json.type() == "Sequence") {
    json.expect_only({"pretokenizers"});
    for (const json_component& part : json.components("pretokenizers")) read_into(part, stages);
    return;
  }
  stages.push_back(read_stage(json));
  // To decide whether a later piece begins the text, Hugging Face uses the offset that the piece
  // has before normalization. That offset is not available here.
  if (stages.size() > 1 && stages.back()->asks_for_start()) {
    json.fail_at("prepend_scheme",
                 "is 'first', which is not supported after another pre-tokenizer");
  }
}

}  // namespace

std::unique_ptr<const pre_tokenizer> read_pre_tokenizer(const json_node& json,
                                                        const std::string& path) {
  if (json.is_null()) return nullptr;
  std::vector<stage_pointer> stages;
  read_into(json_component(json, path), stages);
  return make_staged_pre_tokenizer(std::move(stages));
}

namespace {

class regex_stage final : public cutting_stage<regex_stage> {
 public:
  regex_stage(std::string_view pattern, split_behavior behavior, bool invert)
      : pattern_(pattern), behavior_(behavior), invert_(invert) {}

  template <class Out>
  void cut_to(const section& piece, stage_scratch& scratch, Out& out) const {
    std::vector<stretch>& parts = scratch.stretches;
    parts.clear();
    regex_search search(pattern_, piece.text, scratch.matching);
    std::size_t covered = 0;
    while (const auto found = search.next()) {
      if (covered != found->begin) parts.push_back({covered, found->begin, invert_});
      parts.push_back({found->begin, found->end, !invert_});
      covered = found->end;
    }
    if (covered != piece.text.size()) parts.push_back({covered, piece.text.size(), invert_});
    append_pieces(piece.text, parts, behavior_, out);
  }

 private:
  regex pattern_;
  split_behavior behavior_;
  bool invert_;
};

// Refuses a pattern that can match the empty text. In Hugging Face, such a match inserts text, and
// later steps then duplicate that text.
std::string_view never_empty(std::string_view pattern) {
  if (may_be_empty(parse_pattern(pattern).root)) {
    throw pattern_error("a pattern to be replaced that may match nothing is not supported");
  }
  return pattern;
}

class regex_replace final : public normalizer {
 public:
  regex_replace(std::string_view pattern, std::string content)
      : pattern_(never_empty(pattern)),
        content_(std::move(content)),
        name_("Replace " + formats::in_quotes(pattern)) {}

  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin(name_);
    regex_memory memory;
    regex_search search(pattern_, text, memory);
    auto found = search.next();
    if (!found) return text;
    buffer.clear();
    std::size_t copied = 0;
    for (; found; found = search.next()) {
      limit.expect(buffer.size() + (found->begin - copied) + content_.size());
      buffer.append(text, copied, found->begin - copied).append(content_);
      copied = found->end;
    }
    limit.expect(buffer.size() + (text.size() - copied));
    buffer.append(text, copied);
    return buffer;
  }

  void align(aligned_text& text) const override {
    regex_memory memory;
    regex_search search(pattern_, text.text(), memory);
    aligned_text::replacement parts(text);
    while (const auto found = search.next()) parts.replace(found->begin, found->end, content_);
    parts.finish();
  }

 private:
  regex pattern_;
  std::string content_;
  std::string name_;
};

}  // namespace

stage_pointer make_regex_stage(std::string_view pattern, split_behavior behavior, bool invert) {
  return std::make_unique<regex_stage>(pattern, behavior, invert);
}
normalizer_pointer make_regex_replace(std::string_view pattern, std::string content) {
  return std::make_unique<regex_replace>(pattern, std::move(content));
}

}  // namespace millrace::tokenizer::detail
