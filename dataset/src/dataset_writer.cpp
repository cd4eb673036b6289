// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/dataset_writer.hpp>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/formats/detail/sidecar.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::dataset {

namespace detail {

/// Checks what can be known before a file is created.
MILLRACE_INLINE std::filesystem::path check_output(const std::filesystem::path& prefix,
                                                   std::uint64_t bytes) {
  const auto folder = io::parent_folder(prefix);
  if (!io::is_folder(folder)) {
    throw config_error(prefix.string() + ": there is no folder " + folder.string() +
                       "; create it first");
  }
  if (!prefix.has_filename()) {
    throw config_error(prefix.string() + ": this is a folder; add the name of the dataset");
  }
  const auto free = io::free_bytes_of(folder);
  if (free && *free < bytes) {
    throw error(prefix.string() + ": not enough disk space: " + std::to_string(bytes) +
                " bytes are needed, " + std::to_string(*free) + " are free; nothing was written");
  }
  return prefix;
}

MILLRACE_INLINE std::optional<io::atomic_file> file_if(bool is_wanted,
                                                       const std::filesystem::path& path) {
  if (!is_wanted) return std::nullopt;
  return io::atomic_file(path);
}

}  // namespace detail

MILLRACE_INLINE dataset_writer::dataset_writer(const std::filesystem::path& prefix,
                                               const writer_options& options)
    : options_(options),
      paths_(detail::check_output(prefix, options.bytes)),
      bin_(paths_.bin),
      idx_(paths_.idx),
      document_ends_(paths_.with(".documents")),
      modes_(detail::file_if(options.modes, paths_.with(".modes"))),
      sum_(paths_.of(formats::sidecar::sum)),
      src_(detail::file_if(options.places, paths_.of(formats::sidecar::src))),
      src_groups_(detail::file_if(options.places, paths_.with(".src-groups"))) {
  // Only now, because another process could have finished this dataset before this one got the
  // locks.
  std::vector<std::filesystem::path> names = {paths_.bin, paths_.idx};
  for (const auto which : formats::all_sidecars) names.push_back(paths_.of(which));
  for (const auto& path : names) {
    if (options.overwrite || !io::is_there(path, io::links::are_not_followed)) continue;
    throw config_error(path.string() +
                       " exists; pass --overwrite to replace it, or another --output-prefix");
  }
  // Placeholders: the counts are known only at the end.
  idx_.append(formats::encode_mmidx_header(options.type, 0, 0));
  if (src_) src_->append(formats::encode_src_header({}, {}, 0));
  if (options.mask) mask_.emplace(io::atomic_file(paths_.of(formats::sidecar::mask)));
}

MILLRACE_INLINE void dataset_writer::append_mask(const formats::bit_span& bits, std::uint64_t first,
                                                 std::uint64_t last) {
  mask_->append(bits, first, last);
}

MILLRACE_INLINE void dataset_writer::append_tokens(std::span<const std::byte> tokens) {
  bin_.append(tokens);
  blocks_.add(tokens, checksums_);
}

MILLRACE_INLINE void dataset_writer::append_sequences(std::span<const std::int32_t> lengths,
                                                      std::span<const std::int8_t> modes) {
  assert(modes.size() == (options_.modes ? lengths.size() : 0));
  idx_.append(std::as_bytes(lengths));
  if (modes_) modes_->append(std::as_bytes(modes));
  for (const std::int32_t length : lengths) tokens_of_sequences_ += length;
  sequences_ += static_cast<std::int64_t>(lengths.size());
}

MILLRACE_INLINE void dataset_writer::append_document_ends(std::span<const std::int64_t> ends) {
  document_ends_.append(std::as_bytes(ends));
  documents_ += static_cast<std::int64_t>(ends.size());
  if (!ends.empty()) last_end_ = ends.back();
}

MILLRACE_INLINE void dataset_writer::append_places(std::span<const formats::source_place> places) {
  std::vector<std::byte> payload;
  std::vector<std::byte> directory;
  for (const formats::source_place& place : places) places_.append(place, payload, directory);
  src_->append(payload);
  src_groups_->append(directory);
}

/// Calls `take(bytes)` for each MiB of a file from byte `begin` to its end.
template <class Take>
MILLRACE_INLINE void dataset_writer::read_back(const io::atomic_file& file, std::uint64_t begin,
                                               Take&& take) {
  const std::uint64_t end = file.size_bytes();
  std::vector<std::byte> chunk(std::min<std::uint64_t>(std::uint64_t{1} << 20, end - begin));
  while (begin < end) {
    const auto part = std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), end - begin));
    if (io::pread_some(file.fd(), part, begin, file.partial_path()) != part.size()) {
      throw io_error(file.partial_path(), "read back (did another process change it?)", EIO);
    }
    take(std::span<const std::byte>(part));
    begin += part.size();
  }
}

MILLRACE_INLINE std::string dataset_writer::finish(std::span<const formats::src_input> inputs) {
  if (tokens_of_sequences_ != token_count() || last_end_ != sequences_ ||
      (src_ && places_.save().documents != static_cast<std::uint64_t>(documents_)) ||
      (mask_ && mask_->save().tokens != static_cast<std::uint64_t>(token_count()))) {
    throw error(paths_.prefix.string() + ": not written: the sequences have " +
                std::to_string(tokens_of_sequences_) + " tokens, the .bin has " +
                std::to_string(token_count()) + "; the last document ends after " +
                std::to_string(last_end_) + " of " + std::to_string(sequences_) + " sequences");
  }
  // The lengths lie in their final place. Pointers follow from them.
  const auto item = static_cast<std::int64_t>(formats::size_bytes(options_.type));
  std::int64_t pointer = 0;
  std::vector<std::int64_t> pointers;
  read_back(idx_, formats::mmidx_header_bytes, [&](std::span<const std::byte> bytes) {
    // Appends to the file that is read: read_back asks for the size only once.
    const formats::unaligned_span<std::int32_t> lengths(bytes);
    pointers.clear();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      pointers.push_back(pointer);
      pointer += lengths[i] * item;
    }
    idx_.append(std::as_bytes(std::span(pointers)));
  });
  const std::int64_t first = 0;
  idx_.append(std::as_bytes(std::span(&first, 1)));
  read_back(document_ends_, 0, [&](auto bytes) { idx_.append(bytes); });
  if (modes_) read_back(*modes_, 0, [&](auto bytes) { idx_.append(bytes); });
  io::pwrite_all(idx_.fd(),
                 formats::encode_mmidx_header(options_.type, static_cast<std::uint64_t>(sequences_),
                                              static_cast<std::uint64_t>(documents_)),
                 0, idx_.partial_path());

  if (src_) {
    read_back(*src_groups_, 0, [&](auto bytes) { src_->append(bytes); });
    const auto names = formats::encode_src_inputs(inputs);
    src_->append(names);
    io::pwrite_all(src_->fd(), formats::encode_src_header(places_.save(), inputs, names.size()), 0,
                   src_->partial_path());
  }

  if (mask_) mask_root_ = mask_->finish();
  blocks_.finish(checksums_);
  formats::block_checksums of_idx;
  read_back(idx_, 0, [&](auto bytes) { of_idx.add(bytes, checksums_); });
  of_idx.finish(checksums_);
  sum_.append(formats::encode_sum_header(bin_.size_bytes(), idx_.size_bytes()));
  sum_.append(std::as_bytes(std::span(checksums_)));
  formats::sha256 root;
  read_back(sum_, 0, [&](auto bytes) { root.update(bytes); });
  const auto digest = root.finish();
  sum_.append(std::as_bytes(std::span(digest)));
  return root.hex();
}

MILLRACE_INLINE void dataset_writer::publish(std::string_view meta) {
  std::vector<io::atomic_file*> files = {&bin_, &idx_, &sum_};
  if (src_) files.push_back(&*src_);
  if (mask_) files.push_back(&mask_->file());
  if (!meta.empty()) {
    meta_.emplace(paths_.of(formats::sidecar::meta));
    meta_->append(std::as_bytes(std::span(meta)));
    files.push_back(&*meta_);
  }
  for (io::atomic_file* file : files) file->sync();
  for (io::atomic_file* file : files) file->keep();
  io::publish_dataset(paths_, {meta_.has_value(), true, src_.has_value(), false, mask_.has_value()},
                      [] {});
}

}  // namespace millrace::dataset
