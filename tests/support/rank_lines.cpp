// SPDX-License-Identifier: Apache-2.0
//
// Computes the layout of parallel ranks for scripts. Each line of stdin is a question. The answer
// is a line of JSON on stdout, or "refused: " and the reason.
//
//   groups TP CP EP DP PP ORDER OFFSET AXES    -> groups of ranks
//   place WORLD TP CP PP EP ETP ORDER RANK     -> the rank's place on each axis, the number of data
//                                                 ranks, and which fields the rank needs
//   slice SEQ_LEN CP RANK ROWS                 -> the rank's part of ROWS rows that contain 0, 1,
//                                                 2, ...; then the first token and the length of
//                                                 each range of a row that the rank reads

#include <cstdint>
#include <iostream>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <millrace/formats/detail/json.hpp>
#include <millrace/loader/detail/ranks/rank_role.hpp>

namespace {

using namespace millrace::loader;  // NOLINT: a program of one file
using millrace::formats::json_array;
using millrace::formats::json_value;

json_value list(std::span<const std::int64_t> numbers) {
  json_array all;
  for (const std::int64_t each : numbers) all.emplace_back(each);
  return all;
}

json_value groups(std::istream& in) {
  axis_values sizes;
  std::string order;
  std::string axes;
  std::int64_t offset = 0;
  in >> sizes.tp >> sizes.cp >> sizes.ep >> sizes.dp >> sizes.pp >> order >> offset >> axes;
  json_array all;
  for (const auto& group : rank_grid(sizes, order, offset).groups(axes)) {
    all.push_back(list(group));
  }
  return all;
}

json_value place(std::istream& in) {
  parallel_options o;
  std::int64_t rank = 0;
  in >> o.world_size >> o.tensor_parallel >> o.context_parallel >> o.pipeline_parallel >>
      o.expert_parallel >> o.expert_tensor_parallel >> o.order >> rank;
  const parallel_layout layout(o);
  const rank_role role = role_of(layout, rank, 2 * o.context_parallel);
  const parallel_place& p = role.place;
  const std::int64_t needs = (role.needs.tokens ? 1 : 0) + (role.needs.labels ? 2 : 0);
  const std::vector<std::int64_t> numbers = {
      p.tp, p.cp, p.dp, p.pp, p.ep, p.expert_tp, p.expert_dp, role.data_ranks, needs};
  return list(numbers);
}

json_value slice(std::istream& in) {
  std::int64_t seq_len = 0;
  std::int64_t cp = 0;
  std::int64_t rank = 0;
  std::int64_t rows = 0;
  in >> seq_len >> cp >> rank >> rows;
  const context_slices slices(seq_len, cp, rank);
  std::vector<std::int64_t> whole(static_cast<std::size_t>(rows * seq_len));
  std::iota(whole.begin(), whole.end(), 0);
  std::vector<std::int64_t> part(static_cast<std::size_t>(rows * slices.length()));
  slices.take(std::span<const std::int64_t>(whole), std::span(part));
  std::vector<std::int64_t> reads;
  for (const row_slice& each : slices.reads()) {
    reads.push_back(each.first);
    reads.push_back(each.length);
  }
  json_array both;
  both.push_back(list(part));
  both.push_back(list(reads));
  return both;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    try {
      const json_value answer = verb == "groups"  ? groups(in)
                                : verb == "place" ? place(in)
                                                  : slice(in);
      if (!in) {
        std::cerr << "not understood: " << line << '\n';
        return 1;
      }
      std::cout << millrace::formats::write_json(answer) << '\n';
    } catch (const millrace::config_error& e) {
      std::cout << "refused: " << e.what() << '\n';
    }
  }
}
