// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/data_verifier.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/detail/residency.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/verify/scrubber.hpp>
#include <millrace/loader/detail/verify/verify_core.hpp>

namespace millrace::loader {

MILLRACE_INLINE data_verifier::data_verifier(const std::vector<verified_file>& files,
                                             const verify_options& options,
                                             std::shared_ptr<open_files> table)
    : core_(share_at_home<detail::verify_core>(
          files, loader::check(options), table ? std::move(table) : open_files::of_process())) {
  if (options.mode == verify_mode::off || options.scrub_bytes_per_second == 0) return;
  scrubber_ = scrubber::of_process();
  scrubber_->add(core_);
}

MILLRACE_INLINE void data_verifier::check(std::span<const read_request> requests,
                                          std::int64_t sample) {
  if (const auto found = core_->served_bad()) refuse(*found, sample);
  for (const read_request& request : requests) {
    if (request.from.bytes > 0) check_range(request.from, request.to, sample);
  }
}

MILLRACE_INLINE void data_verifier::touch(std::span<const file_range> ranges) noexcept {
  if (core_->options().mode != verify_mode::first_touch) return;
  for (const file_range& range : ranges) {
    if (range.bytes == 0) continue;
    const std::uint64_t last = (range.offset + range.bytes - 1) / formats::sum_block_bytes;
    for (std::uint64_t b = range.offset / formats::sum_block_bytes; b <= last; ++b) {
      const auto file = static_cast<std::size_t>(range.file);
      const block_state state = (*core_)[file].bin.states()[b];
      if (state != block_state::unseen) continue;
      try {
        (void)look_at(file, b, -1);
      } catch (...) {
        return;  // NOLINT(bugprone-empty-catch): check() repeats the error and names the sample
      }
    }
  }
}

MILLRACE_INLINE void data_verifier::check_range(const file_range& range, const std::byte* bytes,
                                                std::int64_t sample) {
  const auto file = static_cast<std::size_t>(range.file);
  checked_file& in = (*core_)[file].bin;
  bool look_at_tokens = core_->options().mode == verify_mode::off;
  const std::uint64_t first = range.offset / formats::sum_block_bytes;
  const std::uint64_t last = (range.offset + range.bytes - 1) / formats::sum_block_bytes;
  for (std::uint64_t b = first; b <= last && !look_at_tokens; ++b) {
    if (in.states()[b] != block_state::good) look_at_tokens = true;
  }
  if (!look_at_tokens) return;  // the usual case after the first epoch
  for (std::uint64_t b = first; b <= last && core_->options().mode != verify_mode::off; ++b) {
    if (look_at(file, b, sample) != block_state::bad) continue;
    const finding found = core_->of_block(file, b);
    // If the finding is only an invalid token, samples of the block that do not contain this token
    // may still be served.
    const bool ends = found.kind == finding_kind::checksum &&
                      core_->options().bad_blocks == bad_block_policy::fail;
    if (ends) refuse(found, sample);
  }
  check_tokens(in, range, bytes, sample);
}

/// Checks a block now, or leaves it to the scrubber. The states `good` and `bad` are final.
MILLRACE_INLINE block_state data_verifier::look_at(std::size_t file, std::uint64_t block,
                                                   std::int64_t sample) {
  auto& source = (*core_)[file];
  block_states& states = source.bin.states();
  core_->open(source);
  if (core_->is_unknown(source)) return block_state::unseen;
  const bool now = core_->options().mode == verify_mode::first_touch;
  // Without a scrubber, a block in state `left` is tried again whenever it is needed.
  while (now && states.claim(block, scrubber_ == nullptr)) {
    open_files::held_descriptor held;
    bool here = false;
    try {
      held = source.bin.open();
      here = in_memory(held->fd, source.bin, block);
    } catch (...) {
      (void)states.settle(block, block_state::unseen);
      throw;
    }
    if (!here) {
      (void)states.settle(block, block_state::left);
      break;
    }
    core_->check_claimed(file, source.bin, block, sample, held->fd, false);
  }
  if (now) states.wait_for(block);
  const block_state state = states[block];
  if (state == block_state::good || state == block_state::bad) return state;
  const bool known = states.served(block);
  if (sample < 0 && known) return state;
  const block_state then = sample < 0 ? state : states.serve(block);
  if (!known) leave(file, block, sample);
  return then;
}

MILLRACE_INLINE void data_verifier::leave(std::size_t file, std::uint64_t block,
                                          std::int64_t sample) {
  core_->leave({file, block, sample});
  if (scrubber_) scrubber_->wake();
}

MILLRACE_INLINE bool data_verifier::in_memory(const io::unique_fd& fd, const checked_file& in,
                                              std::uint64_t block) const {
  const std::uint64_t first = checked_file::first_byte(block);
  const std::uint64_t size = in.last_byte(block) - first;
  const auto& own = core_->options().in_memory;
  if (own) return own(fd.get(), first, size);
  return io::resident_share(fd.get(), first, size).value_or(0) >= mostly;
}

MILLRACE_INLINE void data_verifier::check_tokens(const checked_file& in, const file_range& range,
                                                 const std::byte* bytes,
                                                 std::int64_t sample) const {
  const auto problem = in.check_tokens({bytes, static_cast<std::size_t>(range.bytes)}, range.offset,
                                       core_->options().vocab_size);
  if (!problem) return;
  refuse({.kind = finding_kind::token,
          .path = in.path(),
          .at_byte = problem->at_byte,
          .what = problem->what},
         sample);
}

MILLRACE_INLINE void data_verifier::refuse(const finding& found, std::int64_t sample) {
  std::string what = found.what;
  const std::string needs = sample < 0 ? "" : "; sample " + std::to_string(sample) + " needs it";
  if (!found.served || found.kind == finding_kind::token) {
    what += needs;
  } else if (found.sample >= 0) {
    what +=
        "; sample " + std::to_string(found.sample) + " was served with it before this was detected";
  } else {
    what += "; samples were served with it before this was detected";
  }
  what += found.kind == finding_kind::token
              ? ": tokenize with the same vocabulary, or raise vocab_size"
              : ": restore a good copy of the file, or block its documents (quarantine)";
  throw format_error(found.path, found.at_byte, what);
}

}  // namespace millrace::loader
