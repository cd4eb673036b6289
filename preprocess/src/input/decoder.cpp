// SPDX-License-Identifier: Apache-2.0
#include "input/decoder.hpp"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include <boost/iostreams/filter/zlib.hpp>

#include <millrace/error.hpp>

#include "input/zstd_frames.hpp"

namespace millrace::preprocess {
namespace {

// Decodes whole members with zlib, which also checks the header, the checksum and the size. zlib is
// called through an internal class of Boost's stream filter, because the filter itself does not
// report where a member ends.
class gzip_decoder final : public decoder {
 public:
  void start() override { inflater_.close(); }

  step decode(std::span<const std::byte>& in, std::span<std::byte>& out, bool /*last*/) override {
    constexpr std::size_t most = std::numeric_limits<int>::max();
    const auto* from = reinterpret_cast<const char*>(in.data());
    const char* const from_end = from + std::min(in.size(), most);
    auto* to = reinterpret_cast<char*>(out.data());
    char* const to_end = to + std::min(out.size(), most);
    step done;
    try {
      done.ended = !inflater_.filter(from, from_end, to, to_end, false);
    } catch (const boost::iostreams::zlib_error& e) {
      namespace zlib = boost::iostreams::zlib;
      // `buf_error` means only that zlib made no progress. It is not an error in the data.
      if (e.error() != zlib::buf_error) done.problem = "zlib rejected a member";
    }
    in = in.subspan(static_cast<std::size_t>(from - reinterpret_cast<const char*>(in.data())));
    out = out.subspan(static_cast<std::size_t>(to - reinterpret_cast<char*>(out.data())));
    return done;
  }

  const char* name() const noexcept override { return "gzip"; }

 private:
  static constexpr int gzip_window_bits = 15 + 16;  // zlib's codes for the largest window and gzip

  boost::iostreams::detail::zlib_decompressor_impl<> inflater_{gzip_window_bits};
};

class zstd_decoder final : public decoder {
 public:
  explicit zstd_decoder(std::uint64_t most_window_bytes)
      : stream_(::ZSTD_createDCtx()), most_window_bytes_(most_window_bytes) {
    if (stream_ == nullptr) throw std::bad_alloc();
    // By default, libzstd refuses windows above 128 MiB. Raise that limit to its maximum: this
    // class applies its own limit instead.
    const int most_log = ::ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound;
    (void)::ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, most_log);
  }

  void start() override {
    (void)::ZSTD_DCtx_reset(stream_.get(), ZSTD_reset_session_only);
    head_bytes_ = 0;
    window_.reset();
  }

  step decode(std::span<const std::byte>& in, std::span<std::byte>& out, bool /*last*/) override {
    if (auto refusal = look_at_head(in); !refusal.empty()) return {.refusal = std::move(refusal)};
    ::ZSTD_inBuffer from{in.data(), in.size(), 0};
    ::ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t hint = ::ZSTD_decompressStream(stream_.get(), &to, &from);
    in = in.subspan(from.pos);
    out = out.subspan(to.pos);
    if (::ZSTD_isError(hint) == 0) return {.ended = hint == 0};
    const ::ZSTD_ErrorCode error = ::ZSTD_getErrorCode(hint);
    if (window_ && error == ZSTD_error_memory_allocation) {
      return {.refusal = zstd_memory_refusal(*window_)};
    }
    if (window_ && error == ZSTD_error_frameParameter_windowTooLarge) {
      return {.problem = zstd_window_damage(*window_)};
    }
    return {.problem = ::ZSTD_getErrorName(hint)};
  }

  const char* name() const noexcept override { return "zstd"; }

 private:
  struct free_stream {
    void operator()(::ZSTD_DCtx* stream) const noexcept { ::ZSTD_freeDCtx(stream); }
  };

  // Checks the size of the frame's window before libzstd receives the whole frame header, because
  // libzstd allocates the window as soon as it has the header.
  std::string look_at_head(std::span<const std::byte> in) {
    if (window_ || head_bytes_ == head_.size()) return {};
    const auto more = in.first(std::min(in.size(), head_.size() - head_bytes_));
    std::ranges::copy(more, head_.begin() + static_cast<std::ptrdiff_t>(head_bytes_));
    head_bytes_ += more.size();
    window_ = zstd_window_of(std::span<const std::byte>(head_).first(head_bytes_));
    return window_ ? zstd_window_refusal(*window_, most_window_bytes_) : std::string();
  }

  std::unique_ptr<::ZSTD_DCtx, free_stream> stream_;
  std::uint64_t most_window_bytes_;
  std::array<std::byte, zstd_header::most_bytes> head_{};  // the first bytes of the frame
  std::size_t head_bytes_ = 0;
  std::optional<zstd_window> window_;  // the frame's window, once its header is known
};

}  // namespace

std::unique_ptr<decoder> make_gzip_decoder() {
  return std::make_unique<gzip_decoder>();
}
std::unique_ptr<decoder> make_zstd_decoder(std::uint64_t most_window_bytes) {
  return std::make_unique<zstd_decoder>(most_window_bytes);
}

std::unique_ptr<decoder> make_decoder(compression compressed_with, const std::string& file_name,
                                      std::uint64_t most_window_bytes) {
  expect_library_for(compressed_with, file_name);
  switch (compressed_with) {
    case compression::gzip:
      return make_gzip_decoder();
    case compression::zstd:
      return make_zstd_decoder(most_window_bytes);
    case compression::bzip2:
      return make_bzip2_decoder();
    case compression::xz:
      return make_xz_decoder();
    case compression::parquet:  // a file would be opened by table_input
      throw config_error(file_name +
                         ": Parquet cannot be read from a pipe, because its index is at its end; "
                         "write it to a file, and pass that file");
    case compression::none:
      break;
  }
  return nullptr;
}

}  // namespace millrace::preprocess
