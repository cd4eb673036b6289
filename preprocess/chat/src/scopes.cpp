// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syntax.hpp"

// Jinja decides before a template runs what each name means. A frame is the whole template, or the
// body of a loop, a macro, a block set or a generation block; if does not open one. Names that a
// frame assigns belong to it, from its beginning to its end. When a frame is entered, each of its
// names gets a first value: that of the enclosing frame's variable, an input, or none at all. This
// is why an assignment in a loop is lost after each iteration.

namespace millrace::chat {
namespace {

constexpr int deepest_tree = 1000;  // nodes in nodes: the renderer calls itself as deeply

/// Code with slots of its own: the template or a macro.
struct function_slots {
  function_slots* parent;
  std::map<std::pair<std::size_t, std::string>, std::uint32_t> slots;
};

struct identity {
  function_slots* function;
  std::uint32_t slot;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads it
  friend auto operator<=>(const identity&, const identity&) = default;
};

struct load {
  enum class way { missing, alias, resolve, parameter } from;
  identity outer = {};
  std::string_view name = {};
};

struct symbols {
  symbols(symbols* in, function_slots* of, std::size_t at_level)
      : parent(in), function(of), level(at_level) {}

  symbols* parent;
  function_slots* function;
  std::size_t level;
  std::map<std::string_view, identity> refs;
  std::map<identity, load> loads;
  std::set<std::string_view> stores;

  const identity* find_ref(std::string_view name) const {
    for (const symbols* s = this; s != nullptr; s = s->parent) {
      if (const auto found = s->refs.find(name); found != s->refs.end()) return &found->second;
    }
    return nullptr;
  }
  identity define(std::string_view name, const load& from) {
    // Frames of one level are never active at the same time, so they share slots, as in Jinja.
    const auto slot = function->slots
                          .try_emplace({level, std::string(name)},
                                       static_cast<std::uint32_t>(function->slots.size()))
                          .first->second;
    const identity made{function, slot};
    refs[name] = made;
    loads[made] = from;
    return made;
  }
  void store(std::string_view name) {
    stores.insert(name);
    if (refs.contains(name)) return;
    if (parent != nullptr) {
      if (const identity* outer = parent->find_ref(name)) {
        define(name, {load::way::alias, *outer});
        return;
      }
    }
    define(name, {load::way::missing});
  }
  identity parameter(std::string_view name) {
    stores.insert(name);
    return define(name, {load::way::parameter});
  }
  void read(std::string_view name) {
    if (find_ref(name) == nullptr) define(name, {load::way::resolve, {}, name});
  }
  void merge_branches(const std::array<symbols, 3>& branches) {
    std::set<std::string_view> stored;
    for (const symbols& branch : branches)
      stored.insert(branch.stores.begin(), branch.stores.end());
    for (const std::string_view name : stores) stored.erase(name);
    for (const symbols& branch : branches) {
      for (const auto& [name, ref] : branch.refs) refs[name] = ref;
      for (const auto& [ref, from] : branch.loads) loads[ref] = from;
      stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (const std::string_view name : stored) {
      const identity target = *find_ref(name);
      if (parent != nullptr) {
        if (const identity* outer = parent->find_ref(name)) {
          loads[target] = {load::way::alias, *outer};
          continue;
        }
      }
      loads[target] = {load::way::resolve, {}, name};
    }
  }
};

class resolver {
 public:
  explicit resolver(chat_template::program& program) : program_(program) {}

  void run() {
    function_slots function{nullptr, {}};
    symbols frame(nullptr, &function, 0);
    for (const node* child : program_.body) collect(*child, frame);
    assign(program_.body, frame);
    program_.frame = loads_of(frame);
    program_.slots = static_cast<std::uint32_t>(function.slots.size());
  }

 private:
  class nesting {
   public:
    nesting(resolver& of, const node& at) : of_(of) {
      if (++of_.depth_ > deepest_tree) {
        throw template_error(
            of_.program_.name, at.line,
            "an expression has more than 1000 nested operations; split it into several");
      }
    }
    ~nesting() { --of_.depth_; }
    nesting(const nesting&) = delete;
    nesting& operator=(const nesting&) = delete;

   private:
    resolver& of_;
  };

  // --- What a frame reads and assigns. This stops at inner frames. ---

  void collect_all(const std::vector<node*>& nodes, symbols& frame) {
    for (const node* child : nodes) {
      if (child != nullptr) collect(*child, frame);
    }
  }
  void collect(const node& n, symbols& frame) {
    const nesting guard(*this, n);
    switch (n.kind) {
      case node_kind::choice:
        collect_if(n, 0, frame);
        return;
      case node_kind::macro:
        frame.store(n.text);
        return;
      case node_kind::set:
        collect(*n.b, frame);
        collect_target(*n.a, frame, false);
        return;
      case node_kind::set_block:
        collect_target(*n.a, frame, false);
        return;
      case node_kind::for_loop:
        collect(*n.b, frame);
        return;
      case node_kind::generation:
        return;
      case node_kind::name:
        if (n.text == "lipsum" || n.text == "cycler" || n.text == "joiner") {
          throw template_error(program_.name, n.line,
                               "the function " + std::string(n.text) + " is not supported");
        }
        frame.read(n.text);
        return;
      default:
        if (n.a != nullptr) collect(*n.a, frame);
        if (n.b != nullptr) collect(*n.b, frame);
        if (n.c != nullptr) collect(*n.c, frame);
        collect_all(n.items, frame);
        for (const keyword& k : n.keywords) collect(*k.expression, frame);
    }
  }
  /// Branch `at` of an if, and the ones after it. An elif is an if of its own beside the else,
  /// which belongs to the first if.
  void collect_if(const node& n, std::size_t, symbols& frame) {
    const bool has_else = n.items.back() == nullptr;
    const std::size_t parts = n.items.size() - (has_else ? 1 : 0);
    collect(*n.items[0], frame);
    std::array<symbols, 3> branches = {frame, frame, frame};
    collect_all(n.blocks[0], branches[0]);
    for (std::size_t i = 1; i < parts; ++i) {
      symbols& others = branches[1];
      collect(*n.items[i], others);
      std::array<symbols, 3> inner = {others, others, others};
      collect_all(n.blocks[i], inner[0]);
      others.merge_branches(inner);
    }
    if (has_else) collect_all(n.blocks.back(), branches[2]);
    frame.merge_branches(branches);
  }
  void collect_target(const node& target, symbols& frame, bool as_parameter) {
    if (target.kind == node_kind::tuple) {
      for (const node* item : target.items) collect_target(*item, frame, as_parameter);
    } else if (target.kind == node_kind::space_name) {
      frame.read(target.a->text);
    } else if (as_parameter) {
      frame.parameter(target.text);
    } else {
      frame.store(target.text);
    }
  }

  // --- The slot of each name ---

  static variable place_of(const identity& ref, const symbols& frame) {
    std::uint32_t hops = 0;
    for (const function_slots* f = frame.function; f != ref.function; f = f->parent) ++hops;
    return {hops, ref.slot};
  }
  static frame_info loads_of(const symbols& frame) {
    frame_info info;
    for (const auto& [ref, from] : frame.loads) {
      frame_load made{frame_load::way::missing, ref.slot, {}, {}};
      if (from.from == load::way::parameter) continue;
      if (from.from == load::way::alias) {
        made.from = frame_load::way::alias;
        made.outer = place_of(from.outer, frame);
      } else if (from.from == load::way::resolve) {
        made.from = frame_load::way::resolve;
        made.name = from.name;
      }
      info.loads.push_back(made);
    }
    return info;
  }

  void assign(const std::vector<node*>& nodes, symbols& frame) {
    for (node* child : nodes) {
      if (child != nullptr) assign(*child, frame);
    }
  }
  void assign(node& n, symbols& frame) {
    const nesting guard(*this, n);
    switch (n.kind) {
      case node_kind::name:
        n.place = place_of(*frame.find_ref(n.text), frame);
        return;
      case node_kind::macro:
        n.place = place_of(*frame.find_ref(n.text), frame);
        assign_macro(n, frame);
        return;
      case node_kind::for_loop:
        assign_for(n, frame);
        return;
      case node_kind::set_block:
      case node_kind::generation: {
        symbols inner(&frame, frame.function, frame.level + 1);
        for (const node* child : n.blocks[0]) collect(*child, inner);
        if (n.a != nullptr) assign(*n.a, frame);
        if (n.b != nullptr) {
          // Jinja evaluates the filter in the inner frame.
          collect(*n.b, inner);
          assign(*n.b, inner);
        }
        assign(n.blocks[0], inner);
        n.frame = loads_of(inner);
        return;
      }
      default:
        if (n.a != nullptr) assign(*n.a, frame);
        if (n.b != nullptr) assign(*n.b, frame);
        if (n.c != nullptr) assign(*n.c, frame);
        assign(n.items, frame);
        for (const keyword& k : n.keywords) assign(*k.expression, frame);
        for (const auto& block : n.blocks) assign(block, frame);
    }
  }

  void assign_for(node& n, symbols& frame) {
    assign(*n.b, frame);
    if (n.c != nullptr) {
      // The test sees the next item while the body may still see the one before, so it has slots of
      // its own.
      symbols test(&frame, frame.function, frame.level + 1 + 1'000'000);
      collect_target(*n.a, test, true);
      collect(*n.c, test);
      assign(*n.c, test);
      n.others.push_back(copy_target(*n.a));
      assign(*n.others.back(), test);
      n.test_frame = loads_of(test);
    }
    symbols body(&frame, frame.function, frame.level + 1);
    if (n.uses_loop) n.loop = place_of(body.parameter("loop"), body);
    collect_target(*n.a, body, true);
    for (const node* child : n.blocks[0]) collect(*child, body);
    assign(*n.a, body);
    assign(n.blocks[0], body);
    n.frame = loads_of(body);

    symbols otherwise(&frame, frame.function, frame.level + 1);
    for (const node* child : n.blocks[1]) collect(*child, otherwise);
    assign(n.blocks[1], otherwise);
    n.else_frame = loads_of(otherwise);
  }
  node* copy_target(const node& target) {
    program_.nodes.push_back(target);
    node* copy = &program_.nodes.back();
    for (node*& item : copy->items) item = copy_target(*item);
    return copy;
  }

  void assign_macro(node& n, symbols& frame) {
    function_slots function{frame.function, {}};
    symbols inner(&frame, &function, frame.level + 1);
    for (const node* parameter : n.items) inner.parameter(parameter->text);
    collect_all(n.others, inner);
    for (const node* child : n.blocks[0]) collect(*child, inner);
    assign(n.items, inner);
    assign(n.others, inner);
    assign(n.blocks[0], inner);
    n.frame = loads_of(inner);
    n.slots = static_cast<std::uint32_t>(function.slots.size());
  }

  chat_template::program& program_;
  int depth_ = 0;
};

}  // namespace

void resolve_scopes(chat_template::program& into) {
  resolver(into).run();
}

}  // namespace millrace::chat
