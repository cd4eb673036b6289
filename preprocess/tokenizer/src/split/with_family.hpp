// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "split/families.hpp"
#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {

/// Makes a Splitter for the family (families.hpp) that implements `wanted`.
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
