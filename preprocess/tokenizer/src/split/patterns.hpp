// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "split/bert_matcher.hpp"
#include "split/cl100k_matcher.hpp"
#include "split/deepseek_matcher.hpp"
#include "split/local_matchers.hpp"
#include "split/o200k_matcher.hpp"
#include "split/r50k_matcher.hpp"
#include "split/splitters.hpp"

/// The patterns of splitters.hpp. Each pattern is a matcher together with the rules that
/// distinguish the patterns of this matcher.
namespace millrace::tokenizer::detail::patterns {

using r50k = r50k_matcher<false>;
using starcoder = r50k_matcher<true>;
using digits_r50k = r50k_matcher<true, true>;

using cl100k = cl100k_matcher<cl100k_rules{.one_space_at_end = true}>;
using llama3 = cl100k_matcher<cl100k_rules{}>;
using qwen2 = cl100k_matcher<cl100k_rules{.numbers_at_most = 1}>;
using qwen35 = cl100k_matcher<cl100k_rules{.numbers_at_most = 1, .marks_are_letters = true}>;
using megatron_v1 = cl100k_matcher<cl100k_rules{.numbers_at_most = 1, .contractions = false}>;
using seed_coder = cl100k_matcher<cl100k_rules{.numbers_at_most = 1, .newline_tail = false}>;

using o200k = o200k_matcher<o200k_rules{}>;
using tekken = o200k_matcher<o200k_rules{.numbers_at_most = 1, .contractions = false}>;
using kimi = o200k_matcher<o200k_rules{.slash_in_tail = false, .han_apart = true}>;

using deepseek_v3 = deepseek_matcher;
using deepseek_coder = deepseek_coder_matcher;
using bloom = bloom_matcher;

using bert = bert_matcher<apart::punctuation>;
using bert_chinese = bert_matcher<apart::punctuation_and_chinese>;
using white_space = bert_matcher<apart::nothing>;

}  // namespace millrace::tokenizer::detail::patterns

namespace millrace::tokenizer::detail {

/// Makes a Splitter with the matcher that implements `wanted`.
template <template <class Matcher> class Splitter>
std::unique_ptr<const word_splitter> make_for(pattern wanted) {
  switch (wanted) {
    case pattern::r50k:
      return std::make_unique<Splitter<patterns::r50k>>();
    case pattern::cl100k:
      return std::make_unique<Splitter<patterns::cl100k>>();
    case pattern::llama3:
      return std::make_unique<Splitter<patterns::llama3>>();
    case pattern::qwen2:
      return std::make_unique<Splitter<patterns::qwen2>>();
    case pattern::qwen35:
      return std::make_unique<Splitter<patterns::qwen35>>();
    case pattern::seed_coder:
      return std::make_unique<Splitter<patterns::seed_coder>>();
    case pattern::o200k:
      return std::make_unique<Splitter<patterns::o200k>>();
    case pattern::tekken:
      return std::make_unique<Splitter<patterns::tekken>>();
    case pattern::megatron_v1:
      return std::make_unique<Splitter<patterns::megatron_v1>>();
    case pattern::kimi:
      return std::make_unique<Splitter<patterns::kimi>>();
    case pattern::deepseek_v3:
      return std::make_unique<Splitter<patterns::deepseek_v3>>();
    case pattern::deepseek_coder:
      return std::make_unique<Splitter<patterns::deepseek_coder>>();
    case pattern::bloom:
      return std::make_unique<Splitter<patterns::bloom>>();
    case pattern::starcoder:
      return std::make_unique<Splitter<patterns::starcoder>>();
    case pattern::digits_r50k:
      return std::make_unique<Splitter<patterns::digits_r50k>>();
    case pattern::bert:
      return std::make_unique<Splitter<patterns::bert>>();
    case pattern::white_space:
      return std::make_unique<Splitter<patterns::white_space>>();
    case pattern::bert_chinese:
      return std::make_unique<Splitter<patterns::bert_chinese>>();
  }
  return nullptr;
}

}  // namespace millrace::tokenizer::detail
