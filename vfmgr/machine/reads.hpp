// SPDX-License-Identifier: Apache-2.0
// What a rule asks for and nobody could read. Every access to a parsed field or to a fact notes it,
// so that diagnose() can limit what the rule claims (checks/claims.hpp): a rule need not remember.
// Values that view the Facts, which outlive them. One thread: rules run one after another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vfmgr/machine/facts.hpp"

namespace vfmgr::checks {

// True unless the machine gave an answer: "there is no such file" and "this device has none of
// that" are answers.
[[nodiscard]] bool is_unread(Unknown const& what);

class Reads {
  public:
    void note(Unknown const& what);  // only if is_unread()
    // The first noted since the last take(); null if all was read.
    [[nodiscard]] Unknown const* first() const;
    // Returns what was noted since the last call, each once.
    [[nodiscard]] std::vector<Unknown> take();

  private:
    std::vector<Unknown> noted_;
};

// A parsed value. Calling it reads it: where its fact is unread, that is noted, and the value is
// what a machine without the fact would have.
template <class T>
class Field {
  public:
    Field() = default;
    Field(T value) : value_(std::move(value)) {}
    Field(T value, Unknown why, Reads& reads) : value_(std::move(value)) {
        if (is_unread(why)) unread_ = std::make_shared<Note>(Note{std::move(why), &reads});
    }

    [[nodiscard]] T const& operator()() const {
        if (unread_) unread_->reads->note(unread_->why);
        return value_;
    }
    // Reads it without a note: for what decides nothing, such as a name in a sentence.
    [[nodiscard]] T const& peek() const { return value_; }
    [[nodiscard]] bool is_read() const { return !unread_; }
    // Returns what `change` makes of the value; the result is unread where this field is.
    template <class Change>
    [[nodiscard]] auto map(Change change) const {
        using Changed = decltype(change(value_));
        if (!unread_) return Field<Changed>(change(value_));
        return Field<Changed>(change(value_), unread_->why, *unread_->reads);
    }

  private:
    struct Note {
        Unknown why;
        Reads* reads;
    };
    T value_{};
    std::shared_ptr<Note const> unread_;
};

// Facts with notes.
class FactReader {
  public:
    FactReader(Facts const& facts, Reads& reads) : facts_(&facts), reads_(&reads) {}

    [[nodiscard]] Known<std::string_view> text(std::string_view path) const;
    [[nodiscard]] Known<std::string_view> target(std::string_view path) const;
    [[nodiscard]] Known<Names> names(std::string_view path) const;
    [[nodiscard]] Known<CommandFact const*> command(std::string_view line) const;
    [[nodiscard]] Known<Names> answers(std::string_view request) const;

    // Returns facts that the pattern matches and that could be read, by name. Notes the others, and
    // the pattern itself unless it was looked up.
    template <class T>
    using Found = std::vector<std::pair<std::string_view, T const*>>;
    [[nodiscard]] Found<Fact> files(std::string_view pattern) const;
    [[nodiscard]] Found<Fact> links(std::string_view pattern) const;
    [[nodiscard]] Found<FolderFact> folders(std::string_view pattern) const;
    [[nodiscard]] Found<CommandFact> commands(std::string_view pattern) const;

    // Facts for what decides nothing.
    [[nodiscard]] Facts const& unnoted() const { return *facts_; }

  private:
    template <class Value>
    [[nodiscard]] Known<Value> noted(Known<Value> known) const;
    template <class Map>
    [[nodiscard]] Found<typename Map::mapped_type> found(Map const& map,
                                                         std::string_view pattern) const;

    Facts const* facts_;
    Reads* reads_;
};

}  // namespace vfmgr::checks
