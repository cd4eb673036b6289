// SPDX-License-Identifier: Apache-2.0
#include "output/space_guard.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/src_encoder.hpp>
#include <millrace/io/file_ops.hpp>

#include "output/disk_room.hpp"

namespace millrace::preprocess {
namespace {

/// The size of a sample, and the fraction of the extrapolated growth that counts as certain with
/// such a sample.
struct sample {
  std::uint64_t text_bytes;
  double certain_part;
};
constexpr std::array<sample, 3> samples = {{
    {std::uint64_t{1} << 20, 0.25},
    {std::uint64_t{8} << 20, 0.5},
    {std::uint64_t{64} << 20, 0.8},
}};

}  // namespace

growth_forecast::growth_forecast(std::span<const input_file> inputs, std::uint64_t total_bytes)
    : total_bytes_(total_bytes),
      plain_(std::ranges::all_of(
          inputs,
          [](const input_file& each) { return each.compressed_with == compression::none; })),
      compressed_alike_(std::ranges::adjacent_find(inputs, std::ranges::not_equal_to(),
                                                   &input_file::compressed_with) == inputs.end()) {}

std::optional<double> growth_forecast::next(std::uint64_t read_bytes, std::uint64_t text_bytes,
                                            bool lags) {
  if (plain_) read_bytes = text_bytes;
  double certain = 0;
  for (const sample& each : samples) {
    if (text_bytes >= each.text_bytes) certain = each.certain_part;
  }
  if (certain <= said_ || read_bytes == 0 || read_bytes >= total_bytes_) return std::nullopt;
  said_ = certain;
  const std::uint64_t done =
      compressed_alike_ && !lags ? read_bytes : std::max(read_bytes, text_bytes);
  return certain * static_cast<double>(total_bytes_ - read_bytes) / static_cast<double>(done);
}

namespace {

constexpr const char* resume_advice = "free disk space, then run the command again with --resume";

std::filesystem::path folder_of(dataset_outputs& outputs) {
  return io::parent_folder(outputs.wholes().front().paths().prefix);
}

/// Returns the space that the files of a run need when every dataset has grown by `growth`. This
/// includes both the partitions, if any, and the whole datasets, because partitions are removed
/// only after they were joined.
std::vector<room_claim> claims_of(dataset_outputs& outputs, double growth,
                                  std::uint64_t names_bytes = 0) {
  std::vector<room_claim> claims;
  const std::size_t partitions = outputs.parts().size() / outputs.wholes().size();
  auto part = outputs.parts().begin();
  for (dataset_writer& whole : outputs.wholes()) {
    dataset_state grown = whole.state().grown(growth);
    if (partitions != 0) {  // data already joined is counted only in its partition
      grown = {};
      grown.bad_bytes = whole.state().grown(growth).bad_bytes;
    }
    for (std::size_t i = 0; i < partitions; ++i, ++part) {
      const dataset_state part_grown = part->state().grown(growth);
      part->claim(part_grown, dataset_writer::role::part, names_bytes, claims);
      grown += part_grown;
    }
    whole.claim(grown, dataset_writer::role::whole, names_bytes, claims);
  }
  return claims;
}

}  // namespace

void space_guard::update(committer& committer, std::uint64_t read_bytes, bool giant) {
  lags_ = lags_ || giant;
  std::uint64_t text_bytes = 0;
  for (const input_total& total : committer.state().inputs) text_bytes += total.text_bytes;
  auto growth = forecast_.next(read_bytes, text_bytes, lags_);
  if (!growth) return;
  growth = std::min(*growth, committer.most_growth().value_or(*growth));
  dataset_outputs& outputs = committer.outputs();
  reserve_all(claims_of(outputs, *growth), folder_of(outputs),
              outputs.parts().empty() ? "the rest of the output (estimate)"
                                      : "the rest of the output (estimate; with --partitions, "
                                        "tokens are stored twice until the run ends)",
              resume_advice);
}

void reserve_for_joining(dataset_outputs& outputs, std::span<const formats::src_input> inputs,
                         std::uint64_t meta_bytes) {
  if (outputs.parts().empty()) return;
  auto claims = claims_of(outputs, 0, formats::encode_src_inputs(inputs).size());
  claims.push_back({nullptr, meta_bytes});
  reserve_all(claims, folder_of(outputs), "the dataset joined from the partitions", resume_advice);
}

void expect_room_for_whole(const std::filesystem::path& prefix, std::uint64_t output_bytes,
                           double growth) {
  const auto parts = static_cast<double>(output_bytes);
  const auto needed = static_cast<std::uint64_t>(parts * growth + parts * (1 + growth));
  const auto free = free_bytes_of(io::parent_folder(prefix));
  if (!free || needed <= *free) return;
  throw error(no_room(
      prefix, "the rest of the output (estimate of the parts and of the dataset merged from them)",
      needed, *free, resume_advice));
}

}  // namespace millrace::preprocess
