// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/token_windows.hpp>

#include <cstdint>
#include <string>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/dtype.hpp>

namespace millrace::dataset {

MILLRACE_INLINE token_windows::token_windows(const indexed_dataset& dataset, std::int64_t seq_len)
    : stream_(dataset.stream()), seq_len_(seq_len) {
  if (seq_len < 1) {
    throw config_error("seq_len is " + std::to_string(seq_len) + ", expected 1 or more");
  }
  if (stream_.type() == formats::dtype::float32 || stream_.type() == formats::dtype::float64) {
    throw config_error(dataset.prefix().string() + " holds " +
                       std::string(formats::name(stream_.type())) + ", expected integers");
  }
  if (stream_.size() <= seq_len) {
    throw config_error(dataset.prefix().string() + " has " + std::to_string(stream_.size()) +
                       " tokens, expected at least seq_len + 1, which is " +
                       std::to_string(static_cast<std::uint64_t>(seq_len) + 1));
  }
  count_ = (stream_.size() - 1) / seq_len;
}

}  // namespace millrace::dataset
