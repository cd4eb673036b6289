// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/special_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

namespace millrace::tokenizer::detail {
namespace {

std::optional<std::int32_t> id_in(const special_table& table, std::string_view content) {
  const auto found = std::ranges::find(table.tokens, content, &special_token::content);
  return found == table.tokens.end() ? std::nullopt : std::optional(found->id);
}

std::int32_t highest(const special_table& table) {
  return std::ranges::max_element(table.tokens, {}, &special_token::id)->id;
}

TEST(SpecialTables, AreConsistent) {
  for (const char* name : {"r50k", "p50k", "p50k_edit", "cl100k", "o200k", "o200k_harmony",
                           "llama3", "llama4", "qwen2", "kimi"}) {
    SCOPED_TRACE(name);
    const special_table table = special_table_of(name);
    std::set<std::string> contents;
    for (const special_token& token : table.tokens) {
      EXPECT_TRUE(contents.insert(token.content).second) << token.content;
    }
    EXPECT_TRUE(id_in(table, table.eod).has_value());
  }
  EXPECT_TRUE(special_table_of("v2").tokens.empty());
}

TEST(SpecialTables, HaveTheIdsOfTiktoken) {
  EXPECT_EQ(id_in(special_table_of("r50k"), "<|endoftext|>"), 50256);
  EXPECT_EQ(id_in(special_table_of("p50k"), "<|endoftext|>"), 50256);
  EXPECT_EQ(id_in(special_table_of("p50k_edit"), "<|fim_suffix|>"), 50283);
  const special_table cl100k = special_table_of("cl100k");
  EXPECT_EQ(id_in(cl100k, "<|endoftext|>"), 100257);
  EXPECT_EQ(id_in(cl100k, "<|fim_suffix|>"), 100260);
  EXPECT_EQ(id_in(cl100k, "<|endofprompt|>"), 100276);
  EXPECT_EQ(cl100k.tokens.size(), 5U);
  const special_table o200k = special_table_of("o200k");
  EXPECT_EQ(id_in(o200k, "<|endoftext|>"), 199999);
  EXPECT_EQ(id_in(o200k, "<|endofprompt|>"), 200018);
  EXPECT_EQ(o200k.tokens.size(), 2U);
}

TEST(SpecialTables, HaveTheIdsOfHarmony) {
  const special_table table = special_table_of("o200k_harmony");
  EXPECT_EQ(table.tokens.size(), 1090U + 1U);  // 199998 to 201087, with one id for two tokens
  EXPECT_EQ(id_in(table, "<|startoftext|>"), 199998);
  EXPECT_EQ(id_in(table, "<|return|>"), 200002);
  EXPECT_EQ(id_in(table, "<|channel|>"), 200005);
  EXPECT_EQ(id_in(table, "<|message|>"), 200008);
  EXPECT_EQ(id_in(table, "<|call|>"), 200012);
  EXPECT_EQ(id_in(table, "<|reserved_200013|>"), 200013);
  EXPECT_EQ(id_in(table, "<|reserved_200018|>"), 200018);
  EXPECT_EQ(id_in(table, "<|endofprompt|>"), 200018);
  EXPECT_EQ(id_in(table, "<|reserved_201087|>"), 201087);
}

TEST(SpecialTables, HaveTheIdsOfMeta) {
  const special_table llama3 = special_table_of("llama3");
  EXPECT_EQ(llama3.tokens.size(), 256U);
  EXPECT_EQ(id_in(llama3, "<|begin_of_text|>"), 128000);
  EXPECT_EQ(id_in(llama3, "<|eot_id|>"), 128009);
  EXPECT_EQ(id_in(llama3, "<|reserved_special_token_250|>"), 128255);
  EXPECT_EQ(highest(llama3), 128255);
  const special_table llama4 = special_table_of("llama4");
  EXPECT_EQ(llama4.tokens.size(), 2048U);
  EXPECT_EQ(id_in(llama4, "<|header_start|>"), 200005);
  EXPECT_EQ(id_in(llama4, "<|finetune_right_pad|>"), 200018);
  EXPECT_EQ(id_in(llama4, "<|text_post_train_reserved_special_token_68|>"), 200079);
  EXPECT_EQ(id_in(llama4, "<|image_start|>"), 200080);
  EXPECT_EQ(id_in(llama4, "<|patch|>"), 200092);
  EXPECT_EQ(id_in(llama4, "<|vision_reserved_special_token_1047|>"), 201133);
  EXPECT_EQ(id_in(llama4, "<|reasoning_thinking_end|>"), 201143);
  EXPECT_EQ(id_in(llama4, "<|reserved_special_token_903|>"), 202047);
  EXPECT_EQ(highest(llama4), 202047);
}

TEST(SpecialTables, HaveTheIdsOfQwen) {
  const special_table table = special_table_of("qwen2");
  EXPECT_EQ(table.ranks, 151643U);
  EXPECT_EQ(table.tokens.size(), 208U);
  EXPECT_EQ(id_in(table, table.eod), 151643);
  EXPECT_EQ(id_in(table, "<|im_start|>"), 151644);
  EXPECT_EQ(id_in(table, "<|im_end|>"), 151645);
  EXPECT_EQ(id_in(table, "<|extra_0|>"), 151646);
  EXPECT_EQ(id_in(table, "<|extra_204|>"), 151850);
  EXPECT_EQ(highest(table), 151850);
}

TEST(SpecialTables, HaveTheIdsOfKimi) {
  const special_table table = special_table_of("kimi");
  EXPECT_EQ(table.ranks, 163584U);
  EXPECT_EQ(table.tokens.size(), 256U);
  EXPECT_EQ(id_in(table, "[BOS]"), 163584);
  EXPECT_EQ(id_in(table, table.eod), 163585);
  EXPECT_EQ(id_in(table, "<|im_assistant|>"), 163588);
  EXPECT_EQ(id_in(table, "<|reserved_token_163589|>"), 163589);
  EXPECT_EQ(id_in(table, "<|start_header_id|>"), 163590);
  EXPECT_EQ(id_in(table, "[EOT]"), 163593);
  EXPECT_EQ(id_in(table, "<|im_system|>"), 163594);
  EXPECT_EQ(id_in(table, "<|tool_calls_section_end|>"), 163596);
  EXPECT_EQ(id_in(table, "<|tool_call_end|>"), 163599);
  EXPECT_EQ(id_in(table, "<|im_middle|>"), 163601);
  EXPECT_EQ(id_in(table, "<|reserved_token_163837|>"), 163837);
  EXPECT_EQ(id_in(table, "[UNK]"), 163838);
  EXPECT_EQ(highest(table), 163839);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
