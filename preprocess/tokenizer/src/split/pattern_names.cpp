// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {
namespace {

using named = std::pair<std::string_view, pattern>;

constexpr named pattern_names[] = {
    {"r50k", pattern::r50k},
    {"p50k", pattern::r50k},
    {"gpt2", pattern::r50k},
    {"cl100k", pattern::cl100k},
    {"llama3", pattern::llama3},
    {"qwen2", pattern::qwen2},
    {"qwen3", pattern::qwen2},
    {"qwen3.5", pattern::qwen35},
    {"seed_coder", pattern::seed_coder},
    {"o200k", pattern::o200k},
    {"llama4", pattern::o200k},
    {"tekken", pattern::tekken},
    {"megatron_v2", pattern::tekken},
    {"megatron_v1", pattern::megatron_v1},
    {"kimi", pattern::kimi},
    {"deepseek_v3", pattern::deepseek_v3},
    {"deepseek_coder", pattern::deepseek_coder},
    {"bloom", pattern::bloom},
    {"starcoder", pattern::starcoder},
};

// Spellings that have the same meaning in both regex engines, Oniguruma and Rust's.
constexpr named spellings[] = {
    // GPT-2's own spelling, then the spellings of tiktoken in three different years.
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     pattern::r50k},
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     pattern::r50k},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", pattern::r50k},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)",
     pattern::r50k},
    // GPT-4's spellings: one from 2022, which Llama 3 also uses, and one from 2023.
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     pattern::llama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
     R"(|\s*[\r\n]|\s+(?!\S)|\s+)",
     pattern::llama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     pattern::qwen2},
    // Ling's spelling
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
     R"(|\s*[\r\n]|\s+(?!\S)|\s+)",
     pattern::qwen2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     pattern::seed_coder},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
     R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     pattern::qwen35},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     pattern::o200k},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     pattern::tekken},
    {R"([^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     pattern::megatron_v1},
    {R"([\p{Han}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
     R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
     R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     pattern::kimi},
    {" ?[^(\\s|[.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C])]+", pattern::bloom},
};

// Spellings that have the given meaning only in Rust's engine. In Oniguruma, a `+` after `{1,3}`
// repeats the group.
constexpr named rust_spellings[] = {
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+)"
     R"(|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     pattern::cl100k},
};

constexpr std::array<std::string_view, 3> deepseek_v3 = {
    R"(\p{N}{1,3})", "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
    R"([!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

// The first split contains the characters CR and LF themselves, not escape sequences.
constexpr std::array<std::string_view, 4> deepseek_coder = {
    "[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"};

std::optional<pattern> find(std::span<const named> in, std::string_view wanted) noexcept {
  const auto found =
      std::find_if(in.begin(), in.end(), [&](const named& n) { return n.first == wanted; });
  if (found == in.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::optional<pattern> pattern_named(std::string_view name) noexcept {
  return find(pattern_names, name);
}

std::optional<pattern> pattern_of_regex(std::string_view regex, regex_dialect dialect) noexcept {
  const auto found = find(spellings, regex);
  if (found || dialect != regex_dialect::rust) return found;
  return find(rust_spellings, regex);
}

std::optional<pattern> pattern_of_regexes(std::span<const std::string_view> regexes,
                                          regex_dialect dialect) noexcept {
  if (regexes.size() == 1) return pattern_of_regex(regexes.front(), dialect);
  if (std::equal(regexes.begin(), regexes.end(), deepseek_v3.begin(), deepseek_v3.end())) {
    return pattern::deepseek_v3;
  }
  return std::nullopt;
}

std::optional<pattern> pattern_of_regexes_and_digits(
    std::span<const std::string_view> regexes) noexcept {
  const bool known =
      std::equal(regexes.begin(), regexes.end(), deepseek_coder.begin(), deepseek_coder.end());
  return known ? std::optional(pattern::deepseek_coder) : std::nullopt;
}

}  // namespace millrace::tokenizer::detail
