// SPDX-License-Identifier: Apache-2.0
#include "output/part_joiner.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/file_ops.hpp>

#include "input/read_back.hpp"
#include "process/fault_point.hpp"

namespace millrace::preprocess {
namespace {

// Returns the end of the chunk that starts at `from` and consists of complete items. The chunk has
// at most `chunk_bytes` bytes, but at least one item, and does not extend past `end`.
std::uint64_t end_of_chunk(std::uint64_t from, std::uint64_t end, std::size_t chunk_bytes,
                           std::uint64_t item_bytes) {
  const std::uint64_t most = std::max<std::uint64_t>(chunk_bytes / item_bytes, 1) * item_bytes;
  return from + std::min(end - from, most);
}

}  // namespace

part_joiner::part_joiner(dataset_writer& whole, std::span<dataset_writer* const> parts,
                         std::span<const formats::src_input> inputs, std::size_t chunk_bytes)
    : whole_(whole),
      parts_(parts),
      inputs_(inputs),
      chunk_bytes_(std::min(chunk_bytes, read_back_bytes)) {}

// Copies the document ends of a part before its lengths. In the part, document ends count sequences
// from the start of the part. In the argument of append(), they count from the current end of
// `whole_`. Until the part's lengths are appended, the end of `whole_` is the start of the part, so
// both counts are equal.
bool part_joiner::next() {
  for (; part_ < parts_.size(); ++part_) {
    dataset_writer& part = *parts_[part_];
    const dataset_state end = part.state();
    const dataset_state now = whole_.state();
    const std::int64_t documents = now.documents - before_.documents;
    const std::int64_t sequences = now.sequences - before_.sequences;
    const std::uint64_t bin_bytes = now.bin_bytes - before_.bin_bytes;
    const std::uint64_t places = now.provenance.documents - before_.provenance.documents;
    const std::uint64_t bits = now.mask.tokens - before_.mask.tokens;
    if (documents < end.documents) return copy_documents(part, documents), true;
    if (sequences < end.sequences) return copy_lengths(part, sequences), true;
    if (bin_bytes < end.bin_bytes) return copy_tokens(part, bin_bytes), true;
    if (places < end.provenance.documents) return copy_places(part, places), true;
    if (bits < end.mask.tokens) return copy_mask(part, bits, end.mask.tokens), true;
    before_.documents += end.documents;
    before_.sequences += end.sequences;
    before_.bin_bytes += end.bin_bytes;
    before_.provenance.documents += end.provenance.documents;
    before_.mask.tokens += end.mask.tokens;
    places_.reset();
    src_.reset();
  }
  return false;
}

void part_joiner::copy_documents(dataset_writer& part, std::int64_t from) {
  const auto begin = static_cast<std::uint64_t>(from) * 8;
  const auto all = static_cast<std::uint64_t>(part.document_count()) * 8;
  std::vector<std::int64_t> ends;
  read_back(part.document_ends(), begin, end_of_chunk(begin, all, chunk_bytes_, 8),
            [&](auto bytes) {
              const formats::unaligned_span<std::int64_t> read(bytes);
              ends.resize(read.size());
              for (std::size_t i = 0; i < read.size(); ++i) ends[i] = read[i];
              whole_.append({}, {}, ends);
            });
}

void part_joiner::copy_lengths(dataset_writer& part, std::int64_t from) {
  const auto begin = static_cast<std::uint64_t>(from) * 4;
  const auto all = static_cast<std::uint64_t>(part.sequence_count()) * 4;
  const std::uint64_t at = formats::mmidx_header_bytes;
  std::vector<std::int32_t> lengths;
  read_back(part.idx(), at + begin, at + end_of_chunk(begin, all, chunk_bytes_, 4),
            [&](auto bytes) {
              const formats::unaligned_span<std::int32_t> read(bytes);
              lengths.resize(read.size());
              for (std::size_t i = 0; i < read.size(); ++i) lengths[i] = read[i];
              whole_.append({}, lengths, {});
            });
}

void part_joiner::copy_tokens(dataset_writer& part, std::uint64_t from) {
  read_back(part.bin(), from, end_of_chunk(from, part.bin().size_bytes(), chunk_bytes_, 1),
            [&](auto bytes) { whole_.append(bytes, {}, {}); });
}

// Copies whole bytes of the part's bits, but for its last ones.
void part_joiner::copy_mask(dataset_writer& part, std::uint64_t from, std::uint64_t end) {
  const std::uint64_t count =
      8 * end_of_chunk(0, formats::mask_bit_bytes(end - from), chunk_bytes_, 1);
  const auto bits = part.read_mask(from, std::min(count, end - from));
  whole_.append_mask(bits.bits(), 0, bits.size());
}

// Copies complete groups of P.src, because a saved state must be at a group boundary.
void part_joiner::copy_places(dataset_writer& part, std::uint64_t from) {
  if (!places_) {
    const auto path = part.finish_places(inputs_);
    src_.emplace(path);
    try {
      places_ = formats::parse_src(src_->bytes());
    } catch (const format_error& e) {
      throw e.in(path);
    }
  }
  std::array<formats::source_place, formats::src_group_documents> group;
  const std::uint64_t groups = formats::src_group_count(places_->document_count());
  std::uint64_t next = from / formats::src_group_documents;
  for (std::size_t bytes = 0; next < groups && bytes < chunk_bytes_; bytes += sizeof(group)) {
    const std::size_t count = places_->decode_group(next++, group);
    whole_.append_places(std::span(group).first(count));
  }
  src_->let_go();
}

namespace {

// Each partition has at most six files, and each file takes two descriptors: its own and one for
// its folder.
constexpr ::rlim_t descriptors_of_part = 12;
// Descriptors for the inputs, the dataset itself, and sockets inherited from the parent process.
constexpr ::rlim_t other_descriptors = 256;

// Returns whether "PREFIX.part-" followed by `rest` may be the name of a partition's file. For
// example, `rest` may be "00003.bin.partial".
bool names_part(std::string_view rest) {
  const std::size_t digits = rest.find_first_not_of("0123456789");
  return digits != rest.npos && digits >= 5 && rest[digits] == '.' && rest.ends_with(".partial");
}

}  // namespace

std::filesystem::path part_prefix(std::filesystem::path prefix, std::size_t partition) {
  prefix += fmt::format(".part-{:05}", partition);
  return prefix;
}

void remove_part_files(const std::filesystem::path& prefix) {
  const std::string start = prefix.filename().string() + ".part-";
  std::vector<std::filesystem::path> found;
  const auto folder = io::parent_folder(prefix);
  std::error_code problem;
  std::filesystem::directory_iterator entries(folder, problem);
  if (problem) throw io_error(folder, "list", problem.value());
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(start) && names_part(std::string_view(name).substr(start.size()))) {
      found.push_back(entry.path());
    }
  }
  for (const auto& path : found) {
    fault_point("publish");
    io::remove_if_exists(path);
  }
}

void expect_room_for_partitions(std::size_t keys, std::size_t partitions) {
  const ::rlim_t wanted = keys * partitions * descriptors_of_part + other_descriptors;
  struct ::rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  if (limit.rlim_max >= wanted) {
    limit.rlim_cur = wanted;
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  }
  throw config_error(
      fmt::format("--partitions {}: needs {} open files for {}, but only {} are allowed; raise "
                  "`ulimit -n`, or use fewer partitions",
                  partitions, wanted, command::counted(static_cast<std::int64_t>(keys), "key"),
                  static_cast<std::uint64_t>(limit.rlim_max)));
}

}  // namespace millrace::preprocess
