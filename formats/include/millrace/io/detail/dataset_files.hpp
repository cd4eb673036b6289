// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>

#include <millrace/error.hpp>
#include <millrace/formats/detail/sidecar.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::io {

/// The paths of a dataset.
struct dataset_paths {
  explicit dataset_paths(const std::filesystem::path& dataset_prefix)
      : prefix(dataset_prefix), bin(with(".bin")), idx(with(".idx")) {}

  std::filesystem::path with(std::string_view suffix) const {
    auto path = prefix;
    path += suffix;
    return path;
  }
  std::filesystem::path of(formats::sidecar which) const { return with(formats::suffix_of(which)); }

  std::filesystem::path prefix;
  std::filesystem::path bin;
  std::filesystem::path idx;
};

/// Says for each possible sidecar (P.meta, P.sum and so on) whether a finished dataset has it.
using sidecar_set = std::array<bool, formats::all_sidecars.size()>;

/// Gives the finished files of a dataset (`NAME.partial`) their final names. First removes the old
/// `.idx`, and last renames the new `.idx`. So if the process is killed in between, the old
/// dataset, the new dataset or no dataset exists, but never a mixture. Another call then completes
/// the work. Also removes old sidecars that the new dataset lacks, and temporary files.
///
/// @param before_step  called before each change of a name
/// @throws io_error  a rename or fsync failed.
template <class Step>
void publish_dataset(const dataset_paths& paths, const sidecar_set& sidecars, Step&& before_step) {
  const auto partial_of = [](std::filesystem::path path) { return path += ".partial"; };
  // Returns false if there is no PATH.partial, because an earlier call has renamed it.
  const auto publish = [&](const std::filesystem::path& path) {
    if (std::rename(partial_of(path).c_str(), path.c_str()) == 0) return true;
    if (errno != ENOENT) throw io_error(path, "rename", errno);
    return false;
  };
  const auto path = parent_folder(paths.prefix);
  const auto folder = open_folder(path);  // may fail, so do this before any change
  if (is_there(partial_of(paths.idx))) {
    before_step();
    if (remove_if_exists(paths.idx)) sync_folder(folder, path);
  }
  for (const formats::sidecar which : formats::all_sidecars) {
    before_step();
    if (sidecars[static_cast<std::size_t>(which)]) {
      publish(paths.of(which));
    } else {
      remove_if_exists(paths.of(which));
      remove_if_exists(partial_of(paths.of(which)));  // of a killed process
    }
  }
  before_step();
  if (publish(paths.bin)) sync_folder(folder, path);
  before_step();
  publish(paths.idx);
  for (const char* spill : {".documents", ".src-groups", ".shuffle", ".keys"}) {
    remove_if_exists(partial_of(paths.with(spill)));
  }
  sync_folder(folder, path);
}

/// Returns the number of bytes that this process may still write to the file system of `folder`.
/// Returns nothing if that number is unknown, because statvfs(3) failed or reported a disk of 0
/// blocks. FUSE reports 0 blocks for file systems that do not implement statfs.
inline std::optional<std::uint64_t> free_bytes_of(const std::filesystem::path& folder) {
  struct ::statvfs disk {};
  if (uninterrupted([&] { return ::statvfs(folder.c_str(), &disk); }) != 0) return std::nullopt;
  // If a FUSE file system does not implement statfs, FUSE reports 0 blocks. That does not mean that
  // the disk is full.
  if (disk.f_blocks == 0) return std::nullopt;
  // Some file systems reserve blocks for root: `f_bfree` includes these blocks, `f_bavail` does
  // not.
  const std::uint64_t blocks = ::geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  return blocks * disk.f_frsize;
}

}  // namespace millrace::io
