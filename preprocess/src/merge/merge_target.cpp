// SPDX-License-Identifier: Apache-2.0
#include "merge/merge_target.hpp"

#include <fcntl.h>

#include <cassert>
#include <cerrno>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_ops.hpp>

#include "process/fault_point.hpp"

namespace millrace::preprocess {
namespace {

std::filesystem::path partial_of(std::filesystem::path path) {
  path += ".partial";
  return path;
}

// Opens the file write-only. If the file were also readable, an NFS client would read a whole page,
// change a part of it and write the whole page back. That could undo what another client wrote to
// the page in the meantime.
io::unique_fd open_for_writing(const std::filesystem::path& path) {
  io::unique_fd fd(
      io::uninterrupted([&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW); }));
  if (!fd) throw io_error(path, "open", errno);
  return fd;
}

target_file open_target(const std::filesystem::path& path, std::uint64_t checksums_at) {
  const auto partial = partial_of(path);
  return {.fd = open_for_writing(partial), .path = partial, .checksums_at = checksums_at};
}

void sync_file(const io::unique_fd& fd, const std::filesystem::path& path) {
  fault_point("sync");
  if (io::uninterrupted([&] { return ::fsync(fd.get()); }) != 0) {
    throw io_error(path, "fsync", errno);
  }
}

}  // namespace

merge_target::merge_target(const dataset_paths& paths, const merged_layout& layout, bool checksums)
    : layout_(layout),
      bin_(open_target(paths.bin, formats::sum_header_bytes)),
      idx_(open_target(paths.idx, formats::sum_header_bytes +
                                      4 * formats::sum_block_count(layout.total.bin_bytes))),
      sum_path_(partial_of(paths.of(sidecar::sum))) {
  if (checksums) sum_ = open_for_writing(sum_path_);
}

void merge_target::write_frame() {
  placed_writer header(*this, idx_, 0);
  header.append(
      formats::encode_mmidx_header(layout_.type, layout_.total.sequences, layout_.total.documents));
  header.finish();
  placed_writer first(*this, idx_, layout_.document_end_at(0));
  const std::int64_t zero = 0;
  first.append(std::as_bytes(std::span(&zero, 1)));
  first.finish();
}

void merge_target::put(const target_file& of, std::span<const block_checksum> blocks) {
  assert(sum_);
  for (const block_checksum& block : blocks) {
    io::pwrite_all(sum_, std::as_bytes(std::span(&block.crc32c, 1)),
                   of.checksums_at + 4 * block.block, sum_path_);
  }
}

void merge_target::put_joined(std::vector<block_piece> bin, std::vector<block_piece> idx) {
  const auto put_all = [&](const target_file& of, std::vector<block_piece> pieces,
                           std::uint64_t file_bytes) {
    try {
      put(of, joined(std::move(pieces), file_bytes));
    } catch (const format_error& e) {
      throw e.in(of.path);
    }
  };
  put_all(bin_, std::move(bin), layout_.total.bin_bytes);
  put_all(idx_, std::move(idx), layout_.idx_bytes());
}

void merge_target::sync(const stop_flag& stop) {
  stop.check();
  sync_file(bin_.fd, bin_.path);
  io::drop_synced(bin_.fd);
  stop.check();
  sync_file(idx_.fd, idx_.path);
  stop.check();
  if (sum_) sync_file(sum_, sum_path_);
}

void placed_writer::append(std::span<const std::byte> bytes) {
  io::pwrite_all(file_.fd, bytes, offset_, file_.path, io::page_cache::pass_through);
  offset_ += bytes.size();
  add_checksums(bytes);
}

void placed_writer::append_copy(const io::unique_fd& from, const std::filesystem::path& from_path,
                                std::uint64_t from_offset, std::uint64_t size,
                                std::span<const std::byte> bytes, io::page_cache pages) {
  const std::uint64_t n =
      io::copy_range(from, from_offset, from_path, file_.fd, offset_, file_.path, size);
  if (n != size) {
    throw format_error(from_path, from_offset + n,
                       "the file became shorter while it was being read");
  }
  // Start writing to the disk now, so that sync() has little left to wait for. Ignore errors of
  // this call, because sync() reports them.
  (void)::sync_file_range(file_.fd.get(), static_cast<::off_t>(offset_), static_cast<::off_t>(n),
                          SYNC_FILE_RANGE_WRITE);
  io::drop_written(file_.fd, offset_, n);  // copy_range() always uses the page cache
  if (pages == io::page_cache::pass_through) io::drop_read(from, from_offset, n);
  offset_ += n;
  add_checksums(bytes);
}

void placed_writer::add_checksums(std::span<const std::byte> bytes) {
  if (!target_.has_checksums()) return;
  checksums_.add(bytes, completed_, file_.pieces);
  target_.put(file_, completed_);
  completed_.clear();
}

}  // namespace millrace::preprocess
