// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/folder_class.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

namespace millrace::tokenizer::detail {
namespace {

struct typed_class {
  std::string_view stem;
  std::vector<std::string_view> model_types;
};

const std::vector<typed_class> typed_classes = {
    {"Albert", {"albert", "yoso"}},
    {"Bart", {"bart"}},
    {"Bert", {"bert", "ernie", "megatron-bert", "nezha", "qdqbert"}},
    {"BigBird", {"big_bird"}},
    {"CLIP", {"clip"}},
    {"Camembert", {"camembert"}},
    {"CodeGen", {"codegen", "phi"}},
    {"CodeLlama", {"code_llama"}},
    {"Cohere", {"cohere", "cohere2"}},
    {"ConvBert", {"convbert"}},
    {"Deberta", {"deberta"}},
    {"DebertaV2", {"deberta-v2"}},
    {"DistilBert", {"distilbert"}},
    {"Electra", {"electra"}},
    {"Funnel", {"funnel"}},
    {"GPT2", {"dbrx", "gpt2", "gpt_neo", "gptj", "opt", "starcoder2"}},
    {"GPTNeoX", {"falcon_mamba", "gpt_neox", "mamba", "mamba2", "mpt", "olmo", "olmoe", "rwkv"}},
    {"Gemma", {"gemma", "gemma2", "gemma3", "gemma3_text", "recurrent_gemma", "t5gemma"}},
    {"LED", {"led"}},
    {"Longformer", {"longformer"}},
    {"MPNet", {"mpnet"}},
    {"MobileBert", {"mobilebert"}},
    {"Pegasus", {"pegasus"}},
    {"PreTrained", {"glm", "glm4", "glm4_moe", "modernbert", "nemotron"}},
    {"Qwen2", {"qwen2", "qwen2_5_vl", "qwen2_moe", "qwen2_vl", "qwen3", "qwen3_moe", "qwen3_next"}},
    {"RemBert", {"rembert"}},
    {"Roberta", {"data2vec-text", "ibert", "roberta", "roberta-prelayernorm"}},
    {"T5", {"switch_transformers", "t5"}},
    {"XLMRoberta", {"xlm-roberta", "xmod"}},
    {"XLNet", {"xlnet"}},
};

std::string class_of_model(const json_node& model) {
  if (const auto name = model.text("tokenizer_class")) return std::string(*name);
  const auto type = model.find("model_type");
  if (!type) return {};
  const std::string_view wanted = type->string("model_type");
  for (const typed_class& each : typed_classes) {
    if (std::ranges::find(each.model_types, wanted) != each.model_types.end()) {
      return std::string(each.stem) + "TokenizerFast";
    }
  }
  type->fail("the class of tokenizers for model_type " + formats::in_quotes(wanted) +
             " is not known here, or depends on the version of transformers: name it by "
             "tokenizer_class in tokenizer_config.json");
}

}  // namespace

std::string_view folder_class::stem() const noexcept {
  std::string_view stem = name;
  for (const std::string_view ending : {"Fast", "Backend", "Tokenizer"}) {
    if (stem.ends_with(ending)) stem.remove_suffix(ending.size());
  }
  return stem;
}

folder_class class_of_folder(const json_node& config, std::string_view model) {
  if (const auto name = config.text("tokenizer_class")) return {std::string(*name), false};
  if (model.empty()) return {};
  try {
    const json_document document(model);
    return {class_of_model(json_node(document)), true};
  } catch (const format_error& e) {
    throw e.in("config.json");
  }
}

namespace {

constexpr std::string_view none;
constexpr std::string_view gpt2_end = "<|endoftext|>";

// The control tokens of the classes with the given stems (folder_class.hpp). `contents` has one
// entry per entry of token_names, in the same order.
struct class_names {
  std::vector<std::string_view> stems;
  std::array<std::string_view, token_names.size()> contents;
  std::vector<std::string_view> newer = {};  // names of tokens that only release 5.23 has
};

const std::vector<class_names> all_names = {
    {{"Bert", "ConvBert", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader", "DistilBert",
      "Electra", "LayoutLM", "LayoutLMv2", "Lxmert", "MobileBert", "Realm", "RetriBert", "Splinter",
      "SqueezeBert"},
     {none, none, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}},
    {{"Deberta", "DebertaV2"}, {"[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}},
    {{"Albert", "RemBert"}, {"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"}},
    {{"FNet"},
     {"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"},
     {"bos_token", "eos_token"}},
    {{"BigBird"}, {"<s>", "</s>", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"}},
    {{"Bart", "Barthez", "Blenderbot", "Camembert", "LED", "LayoutLMv3", "LayoutXLM", "Longformer",
      "MarkupLM", "Mvp", "Roberta", "XLMRoberta"},
     {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"}},
    {{"MPNet"}, {"<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"}},
    {{"Funnel", "XLNet"}, {"<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<mask>"}},
    {{"T5"}, {none, "</s>", "<unk>", none, "<pad>", none, none}},
    {{"Udop"}, {none, "</s>", "<unk>", "</s>", "<pad>", none, none}},
    {{"Pegasus"}, {none, "</s>", "<unk>", none, "<pad>", none, "<mask_2>"}},
    {{"Reformer"}, {none, "</s>", "<unk>", none, none, none, none}},
    {{"OpenAIGPT"}, {none, none, "<unk>", none, none, none, none}},
    {{"Llama", "CodeLlama"}, {"<s>", "</s>", "<unk>", none, none, none, none}},
    {{"Bloom"}, {"<s>", "</s>", "<unk>", none, "<pad>", none, none}},
    {{"Gemma"}, {"<bos>", "<eos>", "<unk>", none, "<pad>", none, "<mask>"}, {"mask_token"}},
    {{"Cohere"},
     {"<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<UNK>", "<SEP>", "<PAD>", "<CLS>", "<MASK_TOKEN>"},
     {"sep_token", "pad_token", "cls_token", "mask_token"}},
    {{"CLIP"}, {"<|startoftext|>", gpt2_end, gpt2_end, none, gpt2_end, none, none}},
    {{"GPT2", "CodeGen"}, {gpt2_end, gpt2_end, gpt2_end, none, none, none, none}},
    {{"GPTNeoX"}, {gpt2_end, gpt2_end, gpt2_end, none, "<|padding|>", none, none}, {"pad_token"}},
    {{"Qwen2"}, {none, gpt2_end, gpt2_end, none, gpt2_end, none, none}},
};

}  // namespace

std::vector<class_token> class_tokens(std::string_view stem) {
  std::vector<class_token> tokens;
  for (const class_names& each : all_names) {
    if (std::ranges::find(each.stems, stem) == each.stems.end()) continue;
    for (std::size_t i = 0; i < token_names.size(); ++i) {
      if (each.contents[i].empty()) continue;
      const bool newer = std::ranges::find(each.newer, token_names[i]) != each.newer.end();
      tokens.push_back({token_names[i], each.contents[i], !newer});
    }
  }
  if (stem == "CodeLlama") {
    tokens.push_back({"prefix_token", "\xE2\x96\x81<PRE>", true});
    tokens.push_back({"middle_token", "\xE2\x96\x81<MID>", true});
    tokens.push_back({"suffix_token", "\xE2\x96\x81<SUF>", true});
    tokens.push_back({"eot_token", "\xE2\x96\x81<EOT>", true});
  }
  return tokens;
}

bool is_known_class(std::string_view stem) {
  // The empty stem, `PreTrained` and `Tokenizers` are the stems of generic classes.
  if (stem.empty() || stem == "PreTrained" || stem == "Tokenizers") return true;
  return std::ranges::any_of(all_names, [&](const class_names& each) {
    return std::ranges::find(each.stems, stem) != each.stems.end();
  });
}

std::vector<std::string> class_extra_tokens(std::string_view stem) {
  if (stem == "Camembert") return {"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"};
  if (stem == "XLNet") return {"<eop>", "<eod>"};
  std::vector<std::string> tokens;
  if (stem == "Pegasus") {
    tokens.emplace_back("<mask_1>");
    for (int i = 2; i < 103; ++i) tokens.push_back("<unk_" + std::to_string(i) + ">");
  }
  return tokens;
}

}  // namespace millrace::tokenizer::detail
