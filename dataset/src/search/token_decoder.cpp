// SPDX-License-Identifier: Apache-2.0
#include "token_decoder.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <millrace/formats/detail/utf8.hpp>

namespace millrace::dataset::detail {

MILLRACE_INLINE void token_decoder::append_run(std::string_view bytes, decoded_tokens& out) const {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  bool whole = true;  // all of it is UTF-8
  for (std::size_t at = 0; whole && at < bytes.size();) {
    const std::size_t size = formats::utf8_sequence_bytes(bytes.substr(at));
    whole = size > 0;
    at += size;
  }
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t size = formats::utf8_sequence_bytes(bytes.substr(at));
    if (!whole && texts_->runs == formats::token_texts::byte_rule::run) size = 0;
    if (size == 0) {
      out.text += replacement;
      out.ends.push_back(out.text.size());
      ++at;
    }
    for (; size > 0; --size) {
      out.text += bytes[at++];
      out.ends.push_back(out.text.size());
    }
  }
}

MILLRACE_INLINE void token_decoder::strip(decoded_tokens& out) const {
  std::size_t drop = 0;
  for (std::size_t i = 0; i < texts_->strip_times; ++i) {
    if (out.text.compare(drop, texts_->strip.size(), texts_->strip) != 0) break;
    drop += texts_->strip.size();
  }
  if (drop == 0) return;
  out.text.erase(0, drop);
  for (std::size_t& end : out.ends) end = end < drop ? 0 : end - drop;
}

}  // namespace millrace::dataset::detail
