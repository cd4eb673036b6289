// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/token_mask.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/mask.hpp>

#include "support/encode_sidecars.hpp"
#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

/// Masks that train exactly the odd tokens. So wherever a program puts a token, its bit is known.
namespace millrace::test {

inline std::vector<std::int64_t> tokens_of(const dataset::indexed_dataset& data) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(data.token_count()));
  data.stream().copy_to(std::span(tokens));
  return tokens;
}

/// Writes PREFIX.mask for a dataset that exists.
inline void write_odd_mask(const std::filesystem::path& prefix) {
  formats::bit_buffer bits;
  for (const std::int64_t token : tokens_of(dataset::indexed_dataset(prefix))) {
    bits.append_run(token % 2 != 0, 1);
  }
  write_bytes(suffixed(prefix, ".mask"), encode_mask(bits.bits()));
}

inline void expect_odd_mask(const std::filesystem::path& prefix) {
  const dataset::indexed_dataset data(prefix, {.check = dataset::check_level::full});
  const auto mask = dataset::token_mask::find(data);
  ASSERT_TRUE(mask) << prefix;
  mask->verify();
  const auto tokens = tokens_of(data);
  std::int64_t trained = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    ASSERT_EQ(mask->bits()[i], tokens[i] % 2 != 0) << prefix << " token " << i;
    trained += mask->bits()[i] ? 1 : 0;
  }
  EXPECT_EQ(mask->trained_count(), trained);
}

}  // namespace millrace::test
