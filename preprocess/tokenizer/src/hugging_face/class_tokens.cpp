// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/class_tokens.hpp"

#include <algorithm>
#include <cstddef>

namespace millrace::tokenizer::detail {
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
  // These are the stems of generic classes.
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
