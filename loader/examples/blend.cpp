// SPDX-License-Identifier: Apache-2.0
//
// Resumes a shuffled blend from the state file STATE, if that file exists. Then serves BATCHES
// batches and saves the new state to the file.
//
//   example_blend STATE BATCHES PREFIX WEIGHT [PREFIX WEIGHT ...]

#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/loader/batch_loader.hpp>

namespace dataset = millrace::dataset;

int main(int argc, char** argv) try {
  if (argc < 5 || argc % 2 == 0) {
    std::cerr << "usage: example_blend STATE BATCHES PREFIX WEIGHT [PREFIX WEIGHT ...]\n";
    return 2;
  }
  const std::filesystem::path state_file = argv[1];
  const int batches = std::stoi(argv[2]);

  // The data. Each source has its own shuffled order; the weights determine how the sources are
  // mixed.
  std::vector<dataset::instant_source> sources;
  dataset::schedule_segment blend;
  for (int i = 3; i < argc; i += 2) {
    blend.sources.push_back({std::ssize(sources), std::stod(argv[i + 1])});
    sources.emplace_back().prefix = argv[i];  // without `.bin` or `.idx`
  }
  dataset::instant_options order;
  order.seed = 1234;
  order.seq_len = 64;
  order.segments = {blend};

  // The batches of this rank.
  millrace::loader::batch_loader loader(dataset::instant_run(sources, order),
                                        {.batch_size = 4, .rank = 0, .world_size = 1});
  if (std::ifstream saved(state_file); saved) {
    loader.load_state(std::string(std::istreambuf_iterator<char>(saved), {}));
  }
  for (int i = 0; i < batches; ++i) {
    const auto batch = loader.next();
    if (!batch) break;
    std::cout << "step " << batch->step() << ": first tokens";
    for (const std::int64_t token : batch->tokens().first(8)) std::cout << ' ' << token;
    std::cout << '\n';
  }
  std::ofstream(state_file) << dataset::write_state(loader.state());
} catch (const std::exception& e) {
  std::cerr << "example_blend: " << e.what() << '\n';
  return 1;
}
