// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "input/byte_buffer.hpp"
#include "record/giant_scanner.hpp"
#include "record/line_window.hpp"

namespace millrace::preprocess {

/// Bytes of text, decoded: grows at its end.
struct text_bytes {
  byte_buffer buffer;
  std::size_t size = 0;

  const char* data() const noexcept { return reinterpret_cast<const char*>(buffer.data()); }
};

/// The texts of one value of a line too long for memory, decoded piece by piece. For one thread.
class giant_texts {
 public:
  /// @param line   its descriptor outlives this
  /// @param value  what scan_giant_line has found in it
  giant_texts(const line_range& line, giant_value value, std::size_t window_bytes);

  /// Goes to the next text; false if there is none.
  /// @pre there was none yet, or read() has returned false
  bool next();

  /// Appends more of the text, whole characters, at most a window at a time.
  ///
  /// @return false at its end.
  /// @throws io_error  as line_window
  bool read(text_bytes& out);

  /// Lone surrogates so far, each of which is a U+FFFD now.
  std::int64_t lone_surrogates() const noexcept { return lone_surrogates_; }

 private:
  char* escape(char* out);
  bool have(std::size_t count);

  line_window window_;
  std::size_t window_bytes_;
  bool started_ = false;
  bool list_ = false;
  std::int64_t lone_surrogates_ = 0;
};

}  // namespace millrace::preprocess
