// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/fim_options.hpp"
#include "support/naive_sample.hpp"

/// The rule of `--fim-rate`, written from formats/spec/meta.md, "Fill in the middle".
namespace millrace::test {

/// The generator that init_by_array makes of two numbers.
inline std::mt19937 naive_twister(std::uint64_t seed) {
  std::vector<std::uint64_t> state = {19650218};
  const auto mixed = [](std::uint64_t word, std::uint64_t factor) {
    return (word ^ word >> 30) * factor & 0xFFFFFFFF;
  };
  for (std::size_t i = 1; i < 624; ++i) {
    state.push_back((mixed(state[i - 1], 1812433253) + i) & 0xFFFFFFFF);
  }
  const std::uint64_t key[2] = {seed & 0xFFFFFFFF, seed >> 32};
  std::size_t i = 1;
  const auto next = [&] {
    if (++i == 624) {
      state[0] = state[623];
      i = 1;
    }
  };
  for (std::size_t count = 0; count < 624; ++count) {
    state[i] =
        ((state[i] ^ mixed(state[i - 1], 1664525)) + key[count % 2] + count % 2) & 0xFFFFFFFF;
    next();
  }
  for (std::size_t count = 0; count < 623; ++count) {
    state[i] = ((state[i] ^ mixed(state[i - 1], 1566083941)) - i) & 0xFFFFFFFF;
    next();
  }
  state[0] = 0x80000000;
  std::stringstream text;
  for (const std::uint64_t word : state) text << word << ' ';
  text << 624;  // all numbers of the state are used
  std::mt19937 twister;
  text >> twister;
  return twister;
}

/// Permutes the texts of one key of a record. The tokens of the options are texts here.
class naive_fim {
 public:
  naive_fim(const preprocess::fim_options& options, std::string_view name, std::uint64_t byte)
      : options_(options),
        twister_(naive_twister(record_number("fim", options.seed, name, byte))) {}

  std::string permuted(const std::string& text) {
    if (text.empty()) return text;
    const std::string& split = options_.split_token;
    if (split.empty() || text.find(split) == text.npos) return permuted(text, options_.rate);
    if (!happens(options_.rate)) return text;
    std::string out;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find(split, begin)) != text.npos;) {
      if (end > begin) {
        out += permuted(text.substr(begin, end - begin), options_.fragment_rate) + split;
      }
      begin = end + split.size();
    }
    return out + permuted(text.substr(begin), options_.fragment_rate);
  }

 private:
  static std::vector<std::string> characters_of(const std::string& text) {
    std::vector<std::string> characters;
    for (const char byte : text) {
      if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) characters.emplace_back();
      characters.back() += byte;
    }
    return characters;
  }

  std::string permuted(const std::string& text, double rate) {
    if (!happens(rate)) return text;
    if (!options_.no_prefix.empty() && text.rfind(options_.no_prefix, 0) == 0) return text;
    const std::vector<std::string> characters = characters_of(text);
    std::size_t at[2] = {up_to(characters.size()), 0};
    at[1] = up_to(characters.size());
    if (at[0] > at[1]) std::swap(at[0], at[1]);
    std::string parts[3];
    for (std::size_t i = 0; i < characters.size(); ++i) {
      parts[i < at[0] ? 0 : i < at[1] ? 1 : 2] += characters[i];
    }
    const auto& [prefix, middle, suffix] = parts;
    const fim_tokens with{options_.prefix_token, options_.middle_token, options_.suffix_token};
    if (happens(options_.spm_rate)) {
      return with.prefix + with.suffix + suffix + with.middle + prefix + middle;
    }
    return with.prefix + prefix + with.suffix + suffix + with.middle + middle;
  }

  struct fim_tokens {
    const std::string& prefix;
    const std::string& middle;
    const std::string& suffix;
  };

  bool happens(double p) {
    const double rare = p <= 0.5 ? p : 1 - p;
    const double q = 1 - rare;
    for (;;) {
      int successes = 0;
      double px = std::exp(std::log(q));
      const auto high = static_cast<double>(twister_() >> 5);
      double u = (high * 67108864 + static_cast<double>(twister_() >> 6)) / 9007199254740992.0;
      while (u > px && successes < 2) {
        ++successes;
        u -= px;
        px = rare * px / q;
      }
      if (successes < 2) return (successes == 1) == (p <= 0.5);
    }
  }

  std::size_t up_to(std::size_t most) {
    std::size_t mask = 0;
    while (mask < most) mask = 2 * mask + 1;
    if (most == 0) return 0;
    for (;;) {
      const std::size_t drawn = twister_() & mask;
      if (drawn <= most) return drawn;
    }
  }

  const preprocess::fim_options options_;
  std::mt19937 twister_;
};

/// Random options. The tokens are bytes, for the byte tokenizer.
template <class Generator>
preprocess::fim_options random_fim(Generator& random) {
  const auto rate = [&] {
    const double rates[] = {0, 1, 0.5, 0.9, 1e-3, 0.01 * static_cast<double>(random() % 100)};
    return rates[random() % 6];
  };
  preprocess::fim_options options;
  options.rate = rate();
  options.spm_rate = rate();
  options.seed = random();
  options.prefix_token = "\x01";
  options.middle_token = "\x02";
  options.suffix_token = "\x03";
  if (random() % 2 == 0) {
    options.split_token = "g";
    options.fragment_rate = rate();
  }
  if (random() % 2 == 0) options.no_prefix = "b";
  return options;
}

}  // namespace millrace::test
