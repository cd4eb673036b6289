// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/special_tables.hpp"

#include <initializer_list>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::string_view end_of_text = "<|endoftext|>";

// Lists tokens with consecutive ids, starting at `first`, or at the id that skip_to() sets.
class lister {
 public:
  explicit lister(std::int32_t first) : next_(first) {}

  lister& add(std::initializer_list<std::string_view> contents) {
    for (const std::string_view content : contents)
      tokens_.push_back({std::string(content), next_++});
    return *this;
  }
  // Adds <|PREFIXn|> for each n from first to last.
  lister& add_numbered(std::string_view prefix, int first, int last) {
    for (int n = first; n <= last; ++n) {
      tokens_.push_back({"<|" + std::string(prefix) + std::to_string(n) + "|>", next_++});
    }
    return *this;
  }
  lister& skip_to(std::int32_t id) {
    next_ = id;
    return *this;
  }
  std::vector<special_token> tokens() const { return tokens_; }

 private:
  std::vector<special_token> tokens_;
  std::int32_t next_;
};

special_table cl100k() {
  lister list(100257);
  list.add({end_of_text, "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"});
  list.skip_to(100276).add({"<|endofprompt|>"});
  return {100256, list.tokens(), std::string(end_of_text)};
}

special_table o200k() {
  lister list(199999);
  list.add({end_of_text}).skip_to(200018).add({"<|endofprompt|>"});
  return {199998, list.tokens(), std::string(end_of_text)};
}

// In the package tiktoken, `<|endofprompt|>` and `<|reserved_200018|>` share an id.
special_table o200k_harmony() {
  lister list(199998);
  list.add({"<|startoftext|>", end_of_text}).add_numbered("reserved_", 200000, 200001);
  list.add({"<|return|>", "<|constrain|>"}).add_numbered("reserved_", 200004, 200004);
  list.add({"<|channel|>", "<|start|>", "<|end|>", "<|message|>"});
  list.add_numbered("reserved_", 200009, 200011).add({"<|call|>"});
  list.add_numbered("reserved_", 200013, 201087);
  list.skip_to(200018).add({"<|endofprompt|>"});
  return {199998, list.tokens(), std::string(end_of_text)};
}

special_table p50k_edit() {
  lister list(50256);
  list.add({end_of_text}).skip_to(50281);
  list.add({"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"});
  return {50280, list.tokens(), std::string(end_of_text)};
}

special_table llama3() {
  constexpr std::string_view reserved = "reserved_special_token_";
  lister list(128000);
  list.add({"<|begin_of_text|>", "<|end_of_text|>"}).add_numbered(reserved, 0, 3);
  list.add({"<|start_header_id|>", "<|end_header_id|>"}).add_numbered(reserved, 4, 4);
  list.add({"<|eot_id|>"}).add_numbered(reserved, 5, 250);
  return {128000, list.tokens(), "<|end_of_text|>"};
}

special_table llama4() {
  lister list(200000);
  list.add({"<|begin_of_text|>", "<|end_of_text|>"});
  list.add({"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"});
  list.add({"<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>", "<|step|>"});
  list.add_numbered("text_post_train_reserved_special_token_", 0, 5);
  list.add({"<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>"});
  list.add_numbered("text_post_train_reserved_special_token_", 8, 68);
  list.add({"<|image_start|>", "<|image_end|>"});
  list.add_numbered("vision_reserved_special_token_", 0, 1);
  list.add({"<|tile_x_separator|>", "<|tile_y_separator|>"});
  list.add_numbered("vision_reserved_special_token_", 2, 5);
  list.add({"<|image|>"}).add_numbered("vision_reserved_special_token_", 6, 6).add({"<|patch|>"});
  list.add_numbered("vision_reserved_special_token_", 7, 1047);
  list.add_numbered("reasoning_reserved_special_token_", 0, 7);
  list.add({"<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"});
  list.add_numbered("reserved_special_token_", 0, 2047 - 1144);
  return {200000, list.tokens(), "<|end_of_text|>"};
}

special_table qwen2() {
  lister list(151643);
  list.add({end_of_text, "<|im_start|>", "<|im_end|>"}).add_numbered("extra_", 0, 204);
  return {151643, list.tokens(), std::string(end_of_text)};
}

special_table kimi() {
  constexpr std::string_view reserved = "reserved_token_";
  lister list(163584);
  list.add({"[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>", "<|im_assistant|>"});
  list.add_numbered(reserved, 163589, 163589);
  list.add({"<|start_header_id|>", "<|end_header_id|>"}).add_numbered(reserved, 163592, 163592);
  list.add(
      {"[EOT]", "<|im_system|>", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"});
  list.add({"<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"});
  list.add_numbered(reserved, 163600, 163600).add({"<|im_middle|>"});
  list.add_numbered(reserved, 163602, 163837).add({"[UNK]", "[PAD]"});
  return {163584, list.tokens(), "[EOS]"};
}

special_table one_token(std::size_t ranks, std::int32_t id) {
  return {ranks, {{std::string(end_of_text), id}}, std::string(end_of_text)};
}

}  // namespace

special_table special_table_of(std::string_view name) {
  if (name == "r50k") return one_token(50256, 50256);
  if (name == "p50k") return one_token(50280, 50256);
  if (name == "p50k_edit") return p50k_edit();
  if (name == "cl100k") return cl100k();
  if (name == "o200k") return o200k();
  if (name == "o200k_harmony") return o200k_harmony();
  if (name == "llama3") return llama3();
  if (name == "llama4") return llama4();
  if (name == "qwen2") return qwen2();
  if (name == "kimi") return kimi();
  return {};
}

}  // namespace millrace::tokenizer::detail
