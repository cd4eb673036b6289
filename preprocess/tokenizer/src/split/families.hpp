// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "split/bert_group.hpp"
#include "split/bloom_group.hpp"
#include "split/cl100k_group.hpp"
#include "split/deepseek_coder_group.hpp"
#include "split/deepseek_group.hpp"
#include "split/o200k_group.hpp"
#include "split/r50k_group.hpp"

/// The patterns of splitters.hpp. Each is defined by the rules that distinguish it within its
/// group.
namespace millrace::tokenizer::detail::families {

using r50k = r50k_group<false>;
using starcoder = r50k_group<true>;
using digits_r50k = r50k_group<true, true>;

using cl100k = cl100k_group<cl100k_rules{.one_space_at_end = true}>;
using llama3 = cl100k_group<cl100k_rules{}>;
using qwen2 = cl100k_group<cl100k_rules{.numbers_at_most = 1}>;
using qwen35 = cl100k_group<cl100k_rules{.numbers_at_most = 1, .marks_are_letters = true}>;
using megatron_v1 = cl100k_group<cl100k_rules{.numbers_at_most = 1, .contractions = false}>;
using seed_coder = cl100k_group<cl100k_rules{.numbers_at_most = 1, .newline_tail = false}>;

using o200k = o200k_group<o200k_rules{}>;
using tekken = o200k_group<o200k_rules{.numbers_at_most = 1, .contractions = false}>;
using kimi = o200k_group<o200k_rules{.slash_in_tail = false, .han_apart = true}>;

using deepseek_v3 = deepseek_group;
using deepseek_coder = deepseek_coder_group;
using bloom = bloom_group;

using bert = bert_group<apart::punctuation>;
using bert_chinese = bert_group<apart::punctuation_and_chinese>;
using white_space = bert_group<apart::nothing>;

}  // namespace millrace::tokenizer::detail::families
