// SPDX-License-Identifier: Apache-2.0
#include "merge/part_readers.hpp"

#include <iterator>
#include <utility>

#include "merge/merge_sidecars.hpp"

namespace millrace::preprocess {
namespace {

// Calls `work`. An error about a block contains the block's offset, but no path, so add the path.
template <class Work>
void in(const std::filesystem::path& of, Work&& work) {
  try {
    work();
  } catch (const format_error& e) {
    throw e.path().empty() ? e.in(of) : e;
  }
}

}  // namespace

token_reader::token_reader(const merge_input& input, bool checksums, const stop_flag& stop)
    : input_(&input), stop_(&stop), left_(input.view().bin_size_bytes) {
  if (!checksums) return;
  const auto path = input.paths().of(sidecar::sum);
  sum_file_ = io::file_mapping(path);
  in(path, [&] { sum_ = formats::parse_sum(sum_file_.bytes()); });
  if (sum_.bin_bytes != left_ || sum_.idx_bytes != input.idx_bytes()) {
    throw format_error(path, 16,
                       fmt::format("it describes a .bin of {} bytes and an .idx of {} bytes, but "
                                   "they have {} and {}; it belongs to another dataset",
                                   sum_.bin_bytes, sum_.idx_bytes, left_, input.idx_bytes()));
  }
  check_.emplace(sum_.bin_blocks, sum_.bin_bytes);
}

std::span<const std::byte> token_reader::next(std::uint64_t size) {
  if (size > end_ - at_) {
    std::ranges::copy(std::span(buffer_).subspan(at_, end_ - at_), buffer_.begin());
    end_ -= at_;
    at_ = 0;
    const std::uint64_t more =
        std::min<std::uint64_t>(left_, std::max<std::uint64_t>(size - end_, piece_bytes));
    if (end_ + more > buffer_.size()) buffer_.resize(end_ + more);
    for (auto rest = std::span(buffer_).subspan(end_, more); !rest.empty();) {
      stop_->check();
      const auto part = rest.first(std::min(rest.size(), piece_bytes));
      input_->read_tokens(offset_, part);
      if (check_) in(input_->paths().bin, [&] { check_->add(part); });
      offset_ += part.size();
      left_ -= part.size();
      rest = rest.subspan(part.size());
    }
    end_ += more;
  }
  const auto result = std::span<const std::byte>(buffer_).subspan(at_, size);
  at_ += size;
  return result;
}

void token_reader::finish() {
  if (!check_) return;
  in(input_->paths().bin, [&] { check_->finish(); });
  formats::sum_check idx_check(sum_.idx_blocks, sum_.idx_bytes);
  std::vector<std::byte> chunk(piece_bytes);
  in(input_->paths().idx, [&] {
    for (std::uint64_t at = 0; at < input_->idx_bytes(); at += chunk.size()) {
      stop_->check();
      const auto part =
          std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), input_->idx_bytes() - at));
      input_->read_index(0, at, part);
      idx_check.add(part);
    }
    idx_check.finish();
  });
}

place_reader::place_reader(const merge_input& input, const formats::dataset_meta& meta,
                           const formats::part_shift& shift,
                           std::vector<formats::src_input>& inputs)
    : path_(input.paths().of(sidecar::src)), file_(path_), shift_(&shift) {
  in(path_, [&] {
    view_ = formats::parse_src(file_.bytes());
    expect_src_of(view_, meta);
    inputs.resize(shift.inputs_before);  // if this part continues the last input, drop that here
    std::ranges::move(view_.inputs(), std::back_inserter(inputs));
    cursor_.emplace(view_);
  });
}

formats::source_place place_reader::next() {
  if (at_ == places_.size()) {
    in(path_, [&] { places_ = cursor_->next(); });
    at_ = 0;
  }
  return shift_->apply(places_[at_++]);
}

}  // namespace millrace::preprocess
