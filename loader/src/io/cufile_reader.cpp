// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/cufile_reader.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <millrace/loader/detail/io/direct_file.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/reader_log.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/reader_report.hpp>

namespace millrace::loader {

MILLRACE_INLINE void cufile_reader::prefetch(std::span<const file_range> ranges) noexcept try {
  small_ranges_.clear();
  for (const file_range& range : ranges) {
    if (!is_large(range.bytes)) small_ranges_.push_back(range);
  }
  plain_.prefetch(small_ranges_);
} catch (...) {  // NOLINT(bugprone-empty-catch): a hint
}

MILLRACE_INLINE void cufile_reader::gather(std::span<const read_request> requests) {
  by_plain_.clear();
  std::uint64_t bytes = 0;
  for (const read_request& r : requests) {
    bytes += r.from.bytes;
    if (!is_large(r.from.bytes)) {
      by_plain_.push_back(r);
      ++small_;
    } else if (read(r)) {
      ++by_cufile_;
    } else {
      by_plain_.push_back(r);
    }
  }
  if (!by_plain_.empty()) plain_.gather(by_plain_);
  log_.add_gather(requests.size(), bytes);
}

MILLRACE_INLINE const cufile_reader::registered* cufile_reader::find(std::int64_t file) {
  for (auto at = registered_.begin(); at != registered_.end(); ++at) {
    if (at->file != file) continue;
    registered_.splice(registered_.begin(), registered_, at);
    return &registered_.front();
  }
  const open_files::file& f = *files_[static_cast<std::size_t>(file)];
  const std::string path = f.path().string() + ": ";
  const open_files::held_descriptor held = table_->open(*files_[static_cast<std::size_t>(file)]);
  direct_file direct = open_direct(held->fd);
  if (!direct.fd) {
    log_.note("files registered with cuFile", false, path + direct.why);
    return nullptr;
  }
  cufile_abi::descriptor descriptor{cufile_abi::is_descriptor, {direct.fd.get()}, nullptr};
  cufile_abi::handle handle = nullptr;
  if (const auto e = library_->functions().add(&handle, &descriptor); e.code != 0) {
    log_.note("files registered with cuFile", false,
              path + "cuFileHandleRegister returned error " + std::to_string(e.code));
    return nullptr;
  }
  // The owner exists before the code below may throw. Its deleter deregisters the file from cuFile,
  // which must happen before the file is closed.
  const std::shared_ptr<void> owned(
      handle, [library = library_](void* h) { library->functions().remove(h); });
  log_.note("files registered with cuFile", true, "each file is registered once, not at each read");
  const bool is_full =
      registered_.size() >= most_handles || (!registered_.empty() && !table_->may_lend());
  if (is_full) registered_.pop_back();
  registered_.push_front({file, std::move(direct.fd), table_->lend(), owned});
  return &registered_.front();
}

// Returns false if cuFile cannot read the request. In that case, pread reads it and reports any
// error.
MILLRACE_INLINE bool cufile_reader::read(const read_request& request) try {
  const registered* const file = find(request.from.file);
  if (file == nullptr) return false;
  for (std::uint64_t done = 0; done < request.from.bytes;) {
    const ::ssize_t n = library_->functions().read(
        file->handle.get(), request.to, request.from.bytes - done,
        static_cast<::off_t>(request.from.offset + done), static_cast<::off_t>(done));
    if (n <= 0) {
      const std::string why = n == -1  ? std::generic_category().message(errno)
                              : n == 0 ? "no more bytes were read"
                                       : "error " + std::to_string(-n);
      log_.note("cuFileRead", false,
                files_[static_cast<std::size_t>(request.from.file)]->path().string() + ": " + why);
      log_.add_retry();
      return false;
    }
    log_.add_read(static_cast<std::uint64_t>(n));
    done += static_cast<std::uint64_t>(n);
  }
  log_.note("cuFileRead", true,
            "used for requests of " + std::to_string(how_.least_bytes) + " bytes or more");
  return true;
} catch (const io_error&) {
  return false;  // opening failed: pread will meet the same error
}

MILLRACE_INLINE reader_report cufile_reader::report() const {
  reader_report report = detail::begin_report(options_, "cufile", uses_it_ ? "cufile" : "pread");
  std::string how = library_->why();
  if (library_->usable() && !uses_it_) how += ", which is no faster than pread";
  if (!uses_it_) report.why += ", but: " + how;
  log_.fill(report, *table_);
  report.grants.push_back(
      {"cuFile for requests of " + std::to_string(how_.least_bytes) + " bytes and more",
       std::to_string(by_cufile_) + " of " + std::to_string(report.requests) + " requests",
       how + "; " + std::to_string(small_) +
           " requests were smaller, or cuFile could not be used"});
  detail::add_fallback(report, plain_.report());
  return report;
}

}  // namespace millrace::loader
