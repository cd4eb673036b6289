// SPDX-License-Identifier: Apache-2.0
#include "output/dataset_writer.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/formats/mmidx.hpp>

#include "input/file_bytes.hpp"
#include "input/read_back.hpp"
#include "process/fault_point.hpp"

namespace millrace::preprocess {
namespace {

std::optional<io::atomic_file> file_if(bool wanted, const std::filesystem::path& path,
                                       io::atomic_file::start how) {
  if (!wanted) return std::nullopt;
  return io::atomic_file(path, how);
}

}  // namespace

dataset_state dataset_state::grown(double growth) const noexcept {
  dataset_state more = *this;
  const auto grow = [growth](auto& count) {
    count +=
        static_cast<std::remove_reference_t<decltype(count)>>(growth * static_cast<double>(count));
  };
  grow(more.bin_bytes);
  grow(more.bad_bytes);
  grow(more.sequences);
  grow(more.documents);
  grow(more.provenance.documents);
  grow(more.provenance.payload_bytes);
  grow(more.mask.tokens);
  return more;
}

dataset_state& dataset_state::operator+=(const dataset_state& more) noexcept {
  bin_bytes += more.bin_bytes;
  bad_bytes += more.bad_bytes;
  sequences += more.sequences;
  documents += more.documents;
  empty_documents += more.empty_documents;
  provenance.documents += more.provenance.documents;
  provenance.payload_bytes += more.provenance.payload_bytes;
  mask.tokens += more.mask.tokens;
  return *this;
}

dataset_writer::dataset_writer(const std::filesystem::path& prefix, const dataset_options& options)
    : dataset_writer(prefix, options, {}, io::atomic_file::start::afresh) {
  // Write a placeholder: the counts are not known yet. finish() overwrites it with the real header.
  idx_.append(formats::encode_mmidx_header(options.type, 0, 0));
  if (options.mask) mask_.emplace(io::atomic_file(paths_.of(sidecar::mask)));
  if (options.cut_keys != 0) {
    cuts_.emplace(paths_.of(sidecar::cuts), options.cut_keys, options.cut_key);
  }
  if (options.digests) digests_.emplace(paths_.of(sidecar::digests));
}

dataset_writer::dataset_writer(const std::filesystem::path& prefix, const dataset_options& options,
                               const dataset_state& from)
    : dataset_writer(prefix, options, from, io::atomic_file::start::go_on) {
  cut_back(bin_, from.bin_bytes);
  cut_back(idx_, formats::mmidx_header_bytes + 4 * static_cast<std::uint64_t>(from.sequences));
  cut_back(documents_spill_, 8 * static_cast<std::uint64_t>(from.documents));
  if (bad_) cut_back(*bad_, from.bad_bytes);
  if (options.mask) {
    io::atomic_file file(paths_.of(sidecar::mask), io::atomic_file::start::go_on);
    cut_back(file, from.mask.file_bytes());
    mask_.emplace(std::move(file), from.mask);
  }
  if (options.cut_keys != 0) {
    cuts_.emplace(paths_.of(sidecar::cuts), options.cut_keys, options.cut_key, from.documents);
  }
  if (options.digests) digests_.emplace(paths_.of(sidecar::digests), from.documents);
  sequences_ = from.sequences;
  documents_ = from.documents;
  empty_documents_ = from.empty_documents;
  last_document_end_ = from.last_document_end;
  keep();
}

dataset_writer::dataset_writer(const std::filesystem::path& prefix, const dataset_options& options,
                               const dataset_state& from, io::atomic_file::start how)
    : options_(options),
      paths_(prefix),
      bin_(paths_.bin, how),
      idx_(paths_.idx, how),
      documents_spill_(paths_.with(".documents"), how),
      bad_(file_if(options.quarantine, paths_.of(sidecar::bad), how)) {
  if (options.checksums) checksums_.emplace(paths_.of(sidecar::sum), how, from.checksums);
  if (options.provenance) provenance_.emplace(paths_.of(sidecar::src), how, from.provenance);
}

template <class Work>
void dataset_writer::for_each_file(Work&& work) {
  work(bin_);
  work(idx_);
  work(documents_spill_);
  for (auto* file : {&bad_, &meta_}) {
    if (*file) work(**file);
  }
  if (checksums_) work(checksums_->file());
  if (provenance_) {
    work(provenance_->file());
    work(provenance_->directory());
  }
  if (mask_) work(mask_->file());
  if (cuts_) work(cuts_->file());
  if (digests_) work(digests_->file());
}

void dataset_writer::append(std::span<const std::byte> ids, std::span<const std::int32_t> lengths,
                            std::span<const std::int64_t> document_ends) {
  if (cuts_) cuts_->flush();  // what a state says to be there must be in the file
  bin_.append(ids, io::page_cache::pass_through);
  if (checksums_) checksums_->add(ids);
  idx_.append(std::as_bytes(lengths));
  std::array<std::int64_t, 4096> absolute;
  for (std::size_t done = 0; done < document_ends.size();) {
    const auto part =
        document_ends.subspan(done, std::min(absolute.size(), document_ends.size() - done));
    for (std::size_t i = 0; i < part.size(); ++i) {
      absolute[i] = sequences_ + part[i];
      if (absolute[i] == std::exchange(last_document_end_, absolute[i])) ++empty_documents_;
    }
    documents_spill_.append(std::as_bytes(std::span(absolute).first(part.size())));
    done += part.size();
  }
  sequences_ += static_cast<std::int64_t>(lengths.size());
  documents_ += static_cast<std::int64_t>(document_ends.size());
}

void dataset_writer::append_places(std::span<const formats::source_place> places) {
  if (provenance_) provenance_->append(places);
}

void dataset_writer::append_mask(const formats::bit_span& bits, std::uint64_t first,
                                 std::uint64_t last) {
  if (mask_) mask_->append(bits, first, last);
}

void dataset_writer::append_cut(const cut_point& point) {
  if (cuts_) cuts_->append(point);
}

void dataset_writer::append_digests(std::span<const text_digest> digests) {
  if (digests_) digests_->append(digests);
}

void dataset_writer::append_bad(std::string_view line) {
  if (bad_) bad_->append(std::as_bytes(std::span(line)));
}

void dataset_writer::keep() noexcept {
  kept_ = true;
  for_each_file([](io::atomic_file& file) { file.keep(); });
}
void dataset_writer::forget() noexcept {
  kept_ = false;
  for_each_file([](io::atomic_file& file) { file.forget(); });
}

dataset_state dataset_writer::state() const noexcept {
  dataset_state now;
  now.bin_bytes = bin_.size_bytes();
  now.bad_bytes = bad_ ? bad_->size_bytes() : 0;
  now.sequences = sequences_;
  now.documents = documents_;
  now.empty_documents = empty_documents_;
  now.last_document_end = last_document_end_;
  if (checksums_) now.checksums = checksums_->save();
  if (provenance_) now.provenance = provenance_->save();
  if (mask_) now.mask = mask_->save();
  return now;
}

void dataset_writer::go_back(const dataset_state& to) {
  bin_.resize(to.bin_bytes);
  idx_.resize(formats::mmidx_header_bytes + 4 * static_cast<std::uint64_t>(to.sequences));
  if (checksums_) checksums_->go_back(to.checksums);
  if (mask_) mask_->go_back(to.mask);
  sequences_ = to.sequences;
}

void dataset_writer::claim(const dataset_state& grown, role as, std::uint64_t names_bytes,
                           std::vector<room_claim>& to) {
  const std::uint64_t idx_bytes =
      as == role::whole
          ? grown.output_bytes() - grown.bin_bytes
          : formats::mmidx_header_bytes + 4 * static_cast<std::uint64_t>(grown.sequences);
  to.push_back({&bin_, grown.bin_bytes});
  to.push_back({&idx_, idx_bytes});
  to.push_back({&documents_spill_, 8 * static_cast<std::uint64_t>(grown.documents)});
  if (bad_) to.push_back({&*bad_, grown.bad_bytes});
  if (checksums_) to.push_back({&checksums_->file(), sum_bytes(grown.bin_bytes, idx_bytes)});
  if (provenance_) {
    const std::uint64_t directory = grown.provenance.directory_bytes();
    to.push_back({&provenance_->directory(), directory});
    to.push_back({&provenance_->file(), formats::src_header_bytes + grown.provenance.payload_bytes +
                                            directory + names_bytes});
  }
  if (mask_) to.push_back({&mask_->file(), formats::mask_bytes(grown.mask.tokens)});
  if (cuts_) {
    to.push_back({&cuts_->file(), usual_cuts_bytes(static_cast<std::uint64_t>(grown.documents))});
  }
  if (digests_) {
    to.push_back({&digests_->file(), digests_bytes(static_cast<std::uint64_t>(grown.documents))});
  }
}

void dataset_writer::sync() {
  if (sync_failed_) throw io_error(bin_.partial_path(), "fsync (an earlier one failed)", EIO);
  sync_failed_ = true;
  for_each_file([](io::atomic_file& file) {
    fault_point("sync");
    file.sync();
  });
  io::drop_synced(bin_.fd());  // only the .bin is large, and usually it is not read back
  sync_failed_ = false;
}

const std::filesystem::path& dataset_writer::finish_places(
    std::span<const formats::src_input> inputs) {
  assert(provenance_);
  provenance_->finish(inputs);
  return provenance_->file().partial_path();
}

dataset_roots dataset_writer::finish(std::span<const formats::src_input> inputs) {
  write_pointers();
  const std::int64_t first_document = 0;
  idx_.append(std::as_bytes(std::span(&first_document, 1)));
  append_spill(documents_spill_);
  io::pwrite_all(idx_.fd(),
                 formats::encode_mmidx_header(options_.type, static_cast<std::uint64_t>(sequences_),
                                              static_cast<std::uint64_t>(documents_)),
                 0, idx_.partial_path());
  if (provenance_) provenance_->finish(inputs);
  assert(!mask_ || mask_->save().tokens == static_cast<std::uint64_t>(token_count()));
  dataset_roots roots;
  if (mask_) roots.mask = mask_->finish();
  if (cuts_) cuts_->finish();
  if (digests_) digests_->finish(documents_);
  // Frees the reserved space after the end of a file.
  const auto trim = [](io::atomic_file& file) { file.resize(file.size_bytes()); };
  trim(bin_);
  trim(idx_);
  if (bad_) trim(*bad_);
  if (provenance_) trim(provenance_->file());
  if (checksums_) trim(checksums_->file());
  if (checksums_) roots.sum = checksums_->finish(idx_, options_.sum_version);
  return roots;
}

void dataset_writer::finish_meta(std::string_view json) {
  meta_.emplace(paths_.of(sidecar::meta));
  if (kept_) meta_->keep();
  meta_->append(std::as_bytes(std::span(json)));
  sync();
}

sidecar_set dataset_writer::sidecars() const noexcept {
  return {meta_.has_value(),       checksums_.has_value(),
          provenance_.has_value(), bad_ && bad_->size_bytes() != 0,
          mask_.has_value(),       cuts_.has_value(),
          digests_.has_value()};
}

// Appends the pointer of each sequence: the total size in bytes of all earlier sequences. Reads the
// lengths back in chunks.
void dataset_writer::write_pointers() {
  std::vector<std::int64_t> pointers;
  const auto item = static_cast<std::int64_t>(formats::size_bytes(options_.type));
  std::int64_t pointer = 0;
  const std::uint64_t begin = formats::mmidx_header_bytes;
  read_back(idx_, begin, begin + 4 * static_cast<std::uint64_t>(sequences_), [&](auto bytes) {
    pointers.clear();
    const formats::unaligned_span<std::int32_t> lengths(bytes);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      pointers.push_back(pointer);
      pointer += lengths[i] * item;
    }
    idx_.append(std::as_bytes(std::span(pointers)));
  });
}

void dataset_writer::append_spill(const io::atomic_file& spill) {
  read_back(spill, 0, spill.size_bytes(), [&](auto bytes) { idx_.append(bytes); });
}

void publish_dataset(const dataset_paths& paths, const sidecar_set& sidecars) {
  io::publish_dataset(paths, sidecars, [] { fault_point("publish"); });
}

}  // namespace millrace::preprocess
