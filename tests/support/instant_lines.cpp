// SPDX-License-Identifier: Apache-2.0
//
// Computes the instant order for scripts. Each line of stdin is a question. The answer is a line of
// stdout.
//
//   window SEED NAME TOKENS SEQ_LEN K     -> epoch, window and first token of sample K; then K
//                                            again, computed from the epoch and the window
//   permute WHAT SEED NAME EPOCH N I      -> the permuted index of I among N; then I again,
//                                            computed from the permuted index
//   order SEED NAME EPOCH N               -> the permuted indices of 0, 1, ... N-1
//   blend LENGTH WEIGHT ...               -> the period; the number of slots of each source in a
//                                            period; the sources of the first LENGTH slots

#include <cstdint>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <millrace/dataset/detail/instant/blend_slots.hpp>
#include <millrace/dataset/detail/instant/feistel.hpp>
#include <millrace/dataset/detail/instant/order_keys.hpp>
#include <millrace/dataset/detail/instant/window_order.hpp>

namespace {

using namespace millrace::dataset;  // NOLINT: a program of one file

feistel epoch_order(const std::string& what, std::uint64_t seed, const std::string& name,
                    std::uint64_t epoch, std::int64_t n) {
  const shuffle_of tag = what == "windows" ? shuffle_of::windows
                         : what == "bins"  ? shuffle_of::bins
                                           : shuffle_of::documents;
  return {n, keys_of(absorb(order_hash(tag, seed, name_hash(name)), epoch))};
}

void answer(std::istringstream& in, std::ostream& out) {
  std::string verb;
  std::string what;
  std::string name;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::int64_t n = 0;
  std::int64_t i = 0;
  in >> verb;
  if (verb == "window") {
    std::int64_t seq_len = 0;
    in >> seed >> name >> n >> seq_len >> i;
    const window_order order(name, n, seq_len, seed);
    const window_place place = order.at(i);
    out << place.epoch << ' ' << place.window << ' ' << place.first_token << ' '
        << order.sample_of(place.epoch, place.window);
  } else if (verb == "permute") {
    in >> what >> seed >> name >> epoch >> n >> i;
    const feistel order = epoch_order(what, seed, name, epoch, n);
    out << order(i) << ' ' << order.inverse(order(i));
  } else if (verb == "order") {
    in >> seed >> name >> epoch >> n;
    const feistel order = epoch_order("windows", seed, name, epoch, n);
    for (i = 0; i < n; ++i) out << order(i) << ' ';
  } else if (verb == "blend") {
    std::vector<double> weights;
    in >> n;
    for (double weight = 0; in >> weight;) weights.push_back(weight);
    const blend_slots slots(weights);
    out << slots.period();
    for (std::int64_t s = 0; s < slots.source_count(); ++s) out << ' ' << slots.slots(s);
    for (i = 0; i < n; ++i) out << ' ' << slots.at(i).source;
  }
}

}  // namespace

int main() {
  try {
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream in(line);
      answer(in, std::cout);
      std::cout << '\n';
    }
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
