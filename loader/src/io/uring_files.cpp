// SPDX-License-Identifier: Apache-2.0
#include "uring_files.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/loader/detail/io/direct_file.hpp>
#include <millrace/loader/detail/io/direct_files.hpp>
#include <millrace/loader/detail/io/open_files.hpp>

#include "uring_ring.hpp"

namespace millrace::loader {

MILLRACE_INLINE bool uring_files::is_direct(std::int64_t file, uring_ring& ring) {
  file_state& state = states_[static_cast<std::size_t>(file)];
  if (state.by != way::unknown) return state.by == way::direct;
  try {
    const open_files::held_descriptor held = table_->open((*this)[file]);
    direct_file direct = open_direct(held->fd);
    if (!direct.fd) {
      if (!direct.may_pass) demote(file, direct.why);
      return false;
    }
    if (put(file, std::move(direct.fd), ring) == none) return false;
    state = {way::direct, direct.alignment};
    log_->note("O_DIRECT", true, direct.why);
    return true;
  } catch (const std::exception&) {
    return false;  // pread tries again and reports the error
  }
}

MILLRACE_INLINE void uring_files::demote(std::int64_t file, const std::string& why) {
  file_state& state = states_[static_cast<std::size_t>(file)];
  if (state.by == way::plain) return;
  state.by = way::plain;
  ++plain_;
  log_->note("O_DIRECT", false, (*this)[file].path().string() + ": " + why + ": read by pread");
}

// Puts an open file into the ring's table. If it displaces another file, that file's queued reads
// are submitted first. Returns `none` if they cannot be submitted.
MILLRACE_INLINE std::size_t uring_files::put(std::int64_t file, io::unique_fd fd,
                                             uring_ring& ring) {
  const direct_files::next_place at = open_.next();
  if (at.loser >= 0 && ring.submit(0) != 0) return none;
  open_.put(file, std::move(fd), at);
  ring.put_file(static_cast<unsigned>(at.place), open_.fd_at(at.place));
  return at.place;
}

MILLRACE_INLINE std::size_t uring_files::place_of(std::int64_t file, uring_ring& ring) {
  if (const std::size_t place = open_.find(file); place != none) return place;
  try {
    const open_files::held_descriptor held = table_->open((*this)[file]);
    direct_file direct = open_direct(held->fd);
    if (!direct.fd) return none;
    return put(file, std::move(direct.fd), ring);
  } catch (const std::exception&) {
    return none;
  }
}

}  // namespace millrace::loader
