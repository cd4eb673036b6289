// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/read_pre_tokenizer.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "hugging_face/json_component.hpp"
#include "hugging_face/regex_components.hpp"
#include "messages/in_quotes.hpp"
#include "pre_tokenize/stages.hpp"
#include "regex/pattern_tree.hpp"

namespace millrace::tokenizer::detail {
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
                 "is " + in_quotes(name) + ", expected 'always', 'first' or 'never'");
  }
  if (json.optional_flag("add_prefix_space") == false && scheme != prepend_scheme::never) {
    json.fail_at("add_prefix_space",
                 "is false, which contradicts a prepend_scheme of " + in_quotes(name));
  }
  return make_metaspace_stage(json.character("replacement"), scheme,
                              json.optional_flag("split").value_or(true));
}

split_behavior behavior_of(const json_component& json) {
  const std::string_view name = json.text("behavior");
  const auto behavior = split_behavior_of(name);
  if (behavior) return *behavior;
  json.fail_at("behavior", "is " + in_quotes(name) +
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
  json.fail_at("type", "unknown pre-tokenizer " + in_quotes(type));
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

}  // namespace millrace::tokenizer::detail
