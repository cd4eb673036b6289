// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace millrace::parquet {

/// Where text goes: a growing buffer of the caller.
class text_sink {
 public:
  text_sink() = default;
  text_sink(const text_sink&) = delete;
  text_sink& operator=(const text_sink&) = delete;
  virtual ~text_sink() = default;

  /// Returns room for at least `bytes` more bytes, after those given so far. The room stays valid
  /// until the next call. Not all of it need be filled.
  virtual char* room(std::size_t bytes) = 0;

  /// `bytes` bytes of the room were filled.
  virtual void filled(std::size_t bytes) = 0;
};

}  // namespace millrace::parquet
