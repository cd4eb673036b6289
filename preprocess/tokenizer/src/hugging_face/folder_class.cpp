// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/folder_class.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <millrace/error.hpp>

#include "messages/in_quotes.hpp"

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
  type->fail("the class of tokenizers for model_type " + in_quotes(wanted) +
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

}  // namespace millrace::tokenizer::detail
