// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::test {

/// Expects that two tokenizers agree in everything but the notes: description, ids of `texts`, cuts
/// of `texts` and the text of each id.
inline void expect_same(const tokenizer::tokenizer& one, const tokenizer::tokenizer& other,
                        const std::vector<std::string_view>& texts) {
  EXPECT_EQ(one.fingerprint(), other.fingerprint());
  EXPECT_EQ(one.eod(), other.eod());
  EXPECT_EQ(one.parts_in_order(), other.parts_in_order());
  ASSERT_EQ(one.vocab_size(), other.vocab_size());
  for (std::int64_t id = 0; id <= one.vocab_size(); ++id) {
    ASSERT_EQ(one.decode({&id, 1}), other.decode({&id, 1})) << "id " << id;
  }
  const auto encoder = one.make_encoder(1 << 20);
  const auto other_encoder = other.make_encoder(1 << 20);
  for (const std::string_view text : texts) {
    tokenizer::id_buffer ids;
    tokenizer::id_buffer other_ids;
    const auto fault = encoder->encode(text, ids);
    const auto other_fault = other_encoder->encode(text, other_ids);
    ASSERT_EQ(fault ? fault->what : "", other_fault ? other_fault->what : "") << text;
    ASSERT_TRUE(std::ranges::equal(ids.ids(), other_ids.ids())) << text;
    ASSERT_EQ(one.last_cut(text), other.last_cut(text)) << text;
    const std::vector<std::int64_t> all(ids.ids().begin(), ids.ids().end());
    ASSERT_EQ(one.decode(all), other.decode(all));
  }
  EXPECT_EQ(encoder->special_tokens_found(), other_encoder->special_tokens_found());
}

}  // namespace millrace::test
