// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <libaio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::bench {

/// Reads as DeepSpeed's DeepNVMe does (csrc/aio/common, `do_aio_operation_overlap`), but also
/// checks results. Uses libaio with O_DIRECT: fills the queue, waits for at least one result, and
/// fills the queue again.
///
/// This class has one advantage over millrace's readers: it treats the windows of all batches as
/// one stream, so the queue never runs empty at the end of a batch.
class libaio_reader {
 public:
  static constexpr std::size_t alignment = 512;

  /// @param most_bytes  maximum size of a window in bytes
  libaio_reader(const std::filesystem::path& path, std::size_t depth, std::size_t most_bytes)
      : path_(path),
        fd_(io::open_read_only(path, O_DIRECT)),
        slot_bytes_((most_bytes + 2 * alignment) / 4096 * 4096 + 4096),
        memory_(static_cast<std::byte*>(std::aligned_alloc(4096, depth * slot_bytes_)), std::free),
        requests_(depth),
        windows_(depth) {
    if (!memory_) throw std::bad_alloc();
    if (const int code = ::io_setup(static_cast<int>(depth), &context_); code < 0) {
      throw io_error(path, "io_setup", -code);
    }
  }
  libaio_reader(const libaio_reader&) = delete;
  libaio_reader& operator=(const libaio_reader&) = delete;
  ~libaio_reader() { (void)::io_destroy(context_); }

  /// Reads all windows. Calls `done(i, bytes)` for each window `i`, in the order in which the reads
  /// complete.
  template <class Done>
  void read(std::span<const loader::file_range> windows, const Done& done) {
    std::vector<std::size_t> free;
    for (std::size_t i = requests_.size(); i-- > 0;) free.push_back(i);
    std::vector<::iocb*> batch;
    std::vector<::io_event> events(requests_.size());
    std::size_t next = 0;
    for (std::size_t pending = 0; next < windows.size() || pending > 0;) {
      batch.clear();
      for (; !free.empty() && next < windows.size(); ++next) {
        const std::size_t slot = free.back();
        free.pop_back();
        const std::uint64_t begin = windows[next].offset / alignment * alignment;
        const std::uint64_t end = windows[next].offset + windows[next].bytes;
        windows_[slot] = next;
        ::io_prep_pread(&requests_[slot], fd_.get(), memory_.get() + slot * slot_bytes_,
                        (end - begin + alignment - 1) / alignment * alignment,
                        static_cast<long long>(begin));
        batch.push_back(&requests_[slot]);
      }
      for (std::size_t sent = 0; sent < batch.size();) {
        const int n = ::io_submit(context_, static_cast<long>(batch.size() - sent), &batch[sent]);
        if (n < 0) throw io_error(path_, "io_submit", -n);
        sent += static_cast<std::size_t>(n);
      }
      pending += batch.size();
      const int n = ::io_getevents(context_, 1, static_cast<long>(pending), events.data(), nullptr);
      if (n < 0) throw io_error(path_, "io_getevents", -n);
      for (int i = 0; i < n; ++i) {
        const ::io_event& event = events[static_cast<std::size_t>(i)];
        const auto slot = static_cast<std::size_t>(event.obj - requests_.data());
        const loader::file_range& window = windows[windows_[slot]];
        const std::uint64_t skew = window.offset % alignment;
        const auto result = static_cast<std::int64_t>(event.res);
        if (result < 0) throw io_error(path_, "read", static_cast<int>(-result));
        if (static_cast<std::uint64_t>(result) < skew + window.bytes) {
          throw io_error(path_, "read", ENODATA);
        }
        done(windows_[slot], memory_.get() + slot * slot_bytes_ + skew);
        free.push_back(slot);
      }
      pending -= static_cast<std::size_t>(n);
    }
  }

 private:
  std::filesystem::path path_;
  io::unique_fd fd_;
  std::size_t slot_bytes_;
  std::unique_ptr<std::byte, decltype(&std::free)> memory_;
  std::vector<::iocb> requests_;
  std::vector<std::size_t> windows_;  // index of the window that each slot reads
  ::io_context_t context_{};
};

}  // namespace millrace::bench
