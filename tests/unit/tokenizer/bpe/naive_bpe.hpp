// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <climits>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bpe/merge_table.hpp"
#include "bpe/token_table.hpp"

namespace millrace::test {

/// A byte-level vocabulary of random merges. Encodes by the definition of BPE, one word at a time.
/// It is slow, but simple enough to be obviously correct.
struct naive_bpe {
  std::array<std::int32_t, 256> byte_ids{};
  tokenizer::detail::token_table tokens;
  std::vector<tokenizer::detail::merge_rule> rules;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> merges;

  /// Bytes 0 to 255 have ids 0 to 255. Each of the `merge_count` merges joins two tokens whose
  /// bytes are in `alphabet`.
  naive_bpe(std::mt19937& random, std::string_view alphabet, int merge_count) {
    for (int byte = 0; byte < 256; ++byte) {
      byte_ids[static_cast<std::size_t>(byte)] = byte;
      tokens.add(byte, std::string(1, static_cast<char>(byte)));
    }
    std::vector<std::int32_t> usable;
    for (const char c : alphabet) usable.push_back(static_cast<unsigned char>(c));
    std::map<std::string, std::int32_t> known;
    for (int tries = 0; tries < 100 * merge_count && std::cmp_less(rules.size(), merge_count);
         ++tries) {
      const std::int32_t left = usable[random() % usable.size()];
      const std::int32_t right = usable[random() % usable.size()];
      const std::string bytes = std::string(tokens.bytes(left)) + std::string(tokens.bytes(right));
      const auto id = static_cast<std::int32_t>(tokens.end_id());
      // The pair must be the encoding of its own bytes. Otherwise, merging would never produce the
      // token.
      if (bytes.size() > 40 || known.contains(bytes) ||
          encode(bytes) != std::vector<std::int32_t>{left, right}) {
        continue;
      }
      known.emplace(bytes, id);
      tokens.add(id, bytes);
      usable.push_back(id);
      rules.push_back({left, right, id});
      merges[{left, right}] = id;
    }
  }

  std::vector<std::int32_t> encode(std::string_view word) const {
    std::vector<std::int32_t> ids;
    for (const char c : word) ids.push_back(static_cast<unsigned char>(c));
    for (;;) {
      std::int32_t lowest = INT32_MAX;
      std::size_t place = 0;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        const auto found = merges.find({ids[i], ids[i + 1]});
        if (found != merges.end() && found->second < lowest) {
          lowest = found->second;
          place = i;
        }
      }
      if (lowest == INT32_MAX) return ids;
      ids[place] = lowest;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
  }
};

}  // namespace millrace::test
