// SPDX-License-Identifier: Apache-2.0
//
// Measures how fast texts are split into pretokens, the pieces that are encoded separately.
// Measures each pattern with each instruction set of this machine, on four kinds of synthetic text.
// If $MILLRACE_BENCH_TEXT is the path of a file, measures the text of that file instead.
//
//   splitter_bench --benchmark_filter='llama3/.*/english'
//
// The ends of pretokens are written to an array of 256 entries, as in the encoders, but nothing
// reads them. "regex" measures two of the patterns with PCRE2. millrace uses PCRE2 if it has no
// specialized splitter for the pattern in a tokenizer.json.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "hugging_face/read_components.hpp"
#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::size_t text_bytes = std::size_t{4} << 20;

/// A synthetic language: its letters, the lengths of its words, and the texts between words.
struct language {
  std::vector<std::string> letters;
  std::uint64_t shortest_word;
  std::uint64_t longest_word;
  std::vector<std::string> between;  ///< drawn at random; frequent texts are repeated
  bool capitals;                     ///< if true, one word in eight begins with `letters.back()`
};

std::vector<std::string> letters_between(char32_t first, char32_t last) {
  std::vector<std::string> letters;
  for (char32_t point = first; point <= last; ++point) {
    std::string letter;
    if (point < 0x80) {
      letter += static_cast<char>(point);
    } else if (point < 0x800) {
      letter += static_cast<char>(0xC0 | point >> 6);
      letter += static_cast<char>(0x80 | (point & 0x3F));
    } else {
      letter += static_cast<char>(0xE0 | point >> 12);
      letter += static_cast<char>(0x80 | (point >> 6 & 0x3F));
      letter += static_cast<char>(0x80 | (point & 0x3F));
    }
    letters.push_back(letter);
  }
  return letters;
}

std::string made_up(const language& language) {
  std::mt19937_64 random(1);
  const auto draw = [&](const std::vector<std::string>& from) {
    return from[random() % from.size()];
  };
  std::string text;
  while (text.size() < text_bytes) {
    const std::uint64_t spread = language.longest_word - language.shortest_word + 1;
    const std::uint64_t word =
        language.shortest_word + std::min(random() % spread, random() % spread);
    if (language.capitals && random() % 8 == 0) text += language.letters.back();
    for (std::uint64_t i = 0; i < word; ++i) text += draw(language.letters);
    text += draw(language.between);
  }
  return text;
}

language english_like() {
  auto letters = letters_between('a', 'z');
  letters.emplace_back("T");
  return {std::move(letters),
          1,
          12,
          {" ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", ", ", ". ", ".\n\n", "'s ",
           " 1984 "},
          true};
}

language code_like() {
  auto letters = letters_between('a', 'z');
  letters.emplace_back("_");
  letters.emplace_back("B");
  return {
      std::move(letters),
      1,
      9,
      {" ", " ", " = ", "(", ");\n", ".", ";\n    ", ", ", " {\n        ", "[0] = ", "'x'", " // "},
      true};
}

language russian_like() {
  return {letters_between(0x430, 0x44F),
          1,
          14,
          {" ", " ", " ", " ", " ", " ", ", ", ". ", " \u2014 "},
          false};
}

language chinese_like() {
  return {letters_between(0x4E00, 0x5FFF),
          2,
          16,
          {"\uFF0C", "\uFF0C", "\u3002", "\u3001", "2024", "\n"},
          false};
}

std::vector<std::pair<std::string, std::string>> texts() {
  if (const char* file = std::getenv("MILLRACE_BENCH_TEXT")) {
    std::ifstream stream(file, std::ios::binary);
    return {{"file", std::string(std::istreambuf_iterator<char>(stream), {})}};
  }
  return {{"english", made_up(english_like())},
          {"code", made_up(code_like())},
          {"russian", made_up(russian_like())},
          {"chinese", made_up(chinese_like())}};
}

void cut(benchmark::State& state, pattern pattern, instruction_set set, const std::string& text) {
  const auto splitter = make_splitter(pattern, set);
  std::array<std::size_t, 256> ends;
  std::size_t number = 0;
  for (auto _ : state) {
    number = 0;
    std::size_t at = 0;
    while (const std::size_t count = splitter->next_ends(text, at, ends)) {
      benchmark::DoNotOptimize(ends.data());
      at = ends[count - 1];
      number += count;
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.counters["bytes_a_pretoken"] =
      static_cast<double>(text.size()) / static_cast<double>(number);
}

// Splits a text as millrace does if a tokenizer.json has a pattern without a specialized splitter,
// and the behavior of the pattern is Isolated.
void cut_by_regex(benchmark::State& state, std::string_view pattern, const std::string& text) {
  const auto stage = make_regex_stage(pattern, split_behavior::isolated, false);
  stage_scratch scratch;
  piece_list pieces;
  for (auto _ : state) {
    pieces.clear();
    stage->cut({text}, scratch, pieces);
    benchmark::DoNotOptimize(pieces.text.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.counters["bytes_a_pretoken"] =
      static_cast<double>(text.size()) / static_cast<double>(pieces.ends.size());
}

constexpr std::pair<const char*, std::string_view> regexes[] = {
    {"r50k", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {"llama3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

const bool registered = [] {
  static const auto all = texts();
  for (const char* name :
       {"r50k", "cl100k", "llama3", "qwen2", "qwen3.5", "o200k", "tekken", "megatron_v1", "kimi",
        "deepseek_v3", "starcoder", "seed_coder", "deepseek_coder", "bloom"}) {
    for (const auto& [set, set_name] :
         {std::pair{instruction_set::portable, "portable"},
          std::pair{instruction_set::neon, "neon"}, std::pair{instruction_set::avx2, "avx2"},
          std::pair{instruction_set::avx512, "avx512"}}) {
      if (!can_run(set)) continue;
      for (const auto& [language, text] : all) {
        benchmark::RegisterBenchmark((std::string(name) + "/" + set_name + "/" + language).c_str(),
                                     cut, *pattern_named(name), set, text);
      }
    }
  }
  for (const auto& [name, regex] : regexes) {
    for (const auto& [language, text] : all) {
      benchmark::RegisterBenchmark((std::string(name) + "/regex/" + language).c_str(), cut_by_regex,
                                   regex, text);
    }
  }
  return true;
}();

}  // namespace
}  // namespace millrace::tokenizer::detail
