// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "split/bert_group.hpp"
#include "split/cl100k_group.hpp"
#include "split/deepseek_group.hpp"
#include "split/local_cuts.hpp"
#include "split/o200k_group.hpp"
#include "split/r50k_group.hpp"
#include "split/splitters.hpp"

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

namespace millrace::tokenizer::detail {

/// Makes a Splitter for the family that implements `wanted`.
template <template <class Family> class Splitter>
std::unique_ptr<const word_splitter> make_for(pattern wanted) {
  switch (wanted) {
    case pattern::r50k:
      return std::make_unique<Splitter<families::r50k>>();
    case pattern::cl100k:
      return std::make_unique<Splitter<families::cl100k>>();
    case pattern::llama3:
      return std::make_unique<Splitter<families::llama3>>();
    case pattern::qwen2:
      return std::make_unique<Splitter<families::qwen2>>();
    case pattern::qwen35:
      return std::make_unique<Splitter<families::qwen35>>();
    case pattern::seed_coder:
      return std::make_unique<Splitter<families::seed_coder>>();
    case pattern::o200k:
      return std::make_unique<Splitter<families::o200k>>();
    case pattern::tekken:
      return std::make_unique<Splitter<families::tekken>>();
    case pattern::megatron_v1:
      return std::make_unique<Splitter<families::megatron_v1>>();
    case pattern::kimi:
      return std::make_unique<Splitter<families::kimi>>();
    case pattern::deepseek_v3:
      return std::make_unique<Splitter<families::deepseek_v3>>();
    case pattern::deepseek_coder:
      return std::make_unique<Splitter<families::deepseek_coder>>();
    case pattern::bloom:
      return std::make_unique<Splitter<families::bloom>>();
    case pattern::starcoder:
      return std::make_unique<Splitter<families::starcoder>>();
    case pattern::digits_r50k:
      return std::make_unique<Splitter<families::digits_r50k>>();
    case pattern::bert:
      return std::make_unique<Splitter<families::bert>>();
    case pattern::white_space:
      return std::make_unique<Splitter<families::white_space>>();
    case pattern::bert_chinese:
      return std::make_unique<Splitter<families::bert_chinese>>();
  }
  return nullptr;
}

}  // namespace millrace::tokenizer::detail
