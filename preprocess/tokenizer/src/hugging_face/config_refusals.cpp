// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/config_refusals.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include <millrace/formats/detail/in_quotes.hpp>

#include "hugging_face/folder_class.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::array refused_keys = {
    "auto_map", "from_slow", "split_special_tokens", "fix_mistral_regex", "src_lang", "tgt_lang",
    "language", "task",      "predict_timestamps",   "legacy_behaviour"};

// Classes that read other files instead of tokenizer.json, or that change what tokenizer.json
// defines. The names are without the suffixes "Tokenizer" and "Fast".
constexpr std::array<std::string_view, 43> own_readers = {"Bartpho",
                                                          "BertGeneration",
                                                          "BertJapanese",
                                                          "BertLegacy",
                                                          "Bertweet",
                                                          "BioGpt",
                                                          "BlenderbotSmall",
                                                          "ByT5",
                                                          "CTRL",
                                                          "Canine",
                                                          "Clvp",
                                                          "CpmAnt",
                                                          "Cpm",
                                                          "Dia",
                                                          "Esm",
                                                          "FSMT",
                                                          "FastSpeech2Conformer",
                                                          "Flaubert",
                                                          "GPTNeoXJapanese",
                                                          "GPTSw3",
                                                          "M2M100",
                                                          "Marian",
                                                          "Mgpstr",
                                                          "MistralCommon",
                                                          "MyT5",
                                                          "PLBart",
                                                          "Perceiver",
                                                          "Phobert",
                                                          "ProphetNet",
                                                          "RoCBert",
                                                          "Siglip",
                                                          "Speech2Text",
                                                          "SpeechT5",
                                                          "Tapas",
                                                          "TransfoXL",
                                                          "Vits",
                                                          "Wav2Vec2CTC",
                                                          "Wav2Vec2PhonemeCTC",
                                                          "XLM",
                                                          "XLMProphetNet",
                                                          "Jukebox",
                                                          "Luke",
                                                          "MLuke"};
constexpr std::array<std::string_view, 5> own_templates = {"Nllb", "MBart", "MBart50",
                                                           "SeamlessM4T", "Whisper"};
constexpr std::array<std::string_view, 1> own_pre_tokenizers = {"RoFormer"};

bool is_one_of(std::string_view name, const auto& names) {
  return std::ranges::find(names, name) != names.end();
}

void check_class(const json_node& config, const folder_class& opened_as) {
  const auto value = config.find("tokenizer_class");
  const std::string_view stem = opened_as.stem();
  const auto refuse = [&](const std::string& reason) {
    (value ? *value : config)
        .fail("tokenizer_class " + opened_as.name + (opened_as.of_model ? " of config.json" : "") +
              " is not supported: " + reason);
  };
  if (is_one_of(stem, own_readers)) {
    refuse("this class does not build its tokenizer from tokenizer.json alone");
  }
  if (is_one_of(stem, own_templates)) {
    refuse(
        "this class adds tokens around a text according to its settings, not to the post_processor "
        "of tokenizer.json. To use the post_processor, pass the file tokenizer.json instead of its "
        "folder");
  }
  if (is_one_of(stem, own_pre_tokenizers)) {
    refuse("this class has its own pre-tokenizer, which tokenizer.json does not describe");
  }
  if (!is_known_class(stem)) {
    refuse(
        "millrace does not know this class, which may change what tokenizer.json describes. If it "
        "changes nothing, pass the file tokenizer.json instead of its folder");
  }
}

std::unordered_set<std::string> contents_of(const added_vocabulary& added) {
  std::unordered_set<std::string> contents;
  for (const added_token& token : added.tokens()) contents.insert(token.content);
  return contents;
}

// Checks that tokenizer.json adds `<extra_id_0>` and so on. Otherwise, a T5 class would add them.
void check_extra_ids(const json_node& config, const folder_class& opened_as,
                     const std::unordered_set<std::string>& added) {
  const auto value = config.find("extra_ids");
  const bool is_t5 = opened_as.stem() == "T5";
  if (!value && !is_t5) return;
  const std::int64_t count = value ? value->integer("extra_ids", 1 << 20) : 100;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string content = "<extra_id_" + std::to_string(i) + ">";
    if (added.contains(content)) continue;
    (value ? *value : config)
        .fail("extra_ids is " + std::to_string(count) + (value ? "" : " by default") + ", but " +
              content + " is not in added_tokens of tokenizer.json");
  }
}

// For each entry whose key names a token, checks that tokenizer.json adds that token.
template <class Names>
void check_tokens(const json_node& entries, const std::unordered_set<std::string>& added,
                  Names names) {
  std::size_t index = 0;
  for (const auto [key, element] : entries.object("the entries")) {
    const json_node value(entries, element, index++);
    if (!names(key)) continue;
    std::string_view content;
    // A value that is neither a text nor a token object is a flag.
    if (element.get(content) != simdjson::SUCCESS &&
        element["content"].get(content) != simdjson::SUCCESS) {
      continue;
    }
    if (content.empty() || added.contains(std::string(content))) continue;
    value.fail(formats::in_quotes(key) + " is " + formats::in_quotes(content) +
               ", which is not in added_tokens of tokenizer.json; whether transformers adds it "
               "depends on its version. Add it there");
  }
}

// Checks the tokens whose names are not in token_names. Release 5 of `transformers` adds all such
// tokens. Release 4 adds only the tokens in extra_special_tokens.
void check_named_tokens(const json_node& config, const std::unordered_set<std::string>& added) {
  check_tokens(config, added, [](std::string_view key) {
    return key.ends_with("_token") && !is_one_of(key, token_names);
  });
  const auto extra = config.find("extra_special_tokens");
  if (!extra || !extra->element().is_object()) return;
  check_tokens(*extra, added, [](std::string_view) { return true; });
}

}  // namespace

void refuse_what_is_not_followed(const json_node& config, const folder_class& opened_as,
                                 const added_vocabulary& added) {
  for (const char* key : refused_keys) {
    const auto value = config.find(key);
    if (!value || (value->element().is_bool() && !value->boolean(key))) continue;
    value->fail(std::string(key) + " is not supported; remove it if it has no effect");
  }
  check_class(config, opened_as);
  const std::unordered_set<std::string> contents = contents_of(added);
  check_extra_ids(config, opened_as, contents);
  check_named_tokens(config, contents);
}

}  // namespace millrace::tokenizer::detail
