// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "input/byte_buffer.hpp"
#include "record/giant_scanner.hpp"
#include "record/line_window.hpp"

namespace millrace::preprocess {

/// Decoded text that grows at its end.
struct text_bytes {
  byte_buffer buffer;
  std::size_t size = 0;

  const char* data() const noexcept { return reinterpret_cast<const char*>(buffer.data()); }
};

/// Decodes the texts of one value piece by piece, because the line is too long for memory. Not
/// thread-safe.
class giant_texts {
 public:
  /// @param line   its descriptor must outlive this object
  /// @param value  from scan_giant_line
  giant_texts(const line_range& line, giant_value value, std::size_t window_bytes);

  /// Moves to the next text. Returns false if there is no next text.
  ///
  /// @pre this is the first call, or read() has returned false
  bool next();

  /// Appends the next piece of the current text to `out`: complete characters, at most one window
  /// of them.
  ///
  /// @return false if the end of the text was reached.
  /// @throws io_error  as line_window.
  bool read(text_bytes& out);

  /// Number of lone surrogates so far. Each was replaced by U+FFFD.
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
