// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::test {

/// The ids of `text`, in a buffer of exactly the size that is asked for, so that ASan sees a write
/// past it.
template <class Id = std::int32_t>
std::vector<Id> encode(tokenizer::encoder& encoder, std::string_view text) {
  std::vector<Id> ids(encoder.max_ids(text.size()));
  ids.shrink_to_fit();
  std::size_t count = 0;
  if (const auto fault = encoder.encode(text, ids.data(), count)) {
    throw std::runtime_error(fault->what);
  }
  if (count > ids.size()) throw std::runtime_error("more ids than max_ids() said");
  ids.resize(count);
  return ids;
}

template <class Id = std::int32_t>
std::vector<Id> encode(const tokenizer::tokenizer& tokenizer, std::string_view text) {
  return encode<Id>(*tokenizer.make_encoder(), text);
}

}  // namespace millrace::test
