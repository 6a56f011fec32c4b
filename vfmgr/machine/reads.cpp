// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/reads.hpp"

#include <algorithm>
#include <cerrno>

namespace vfmgr::checks {

bool is_unread(Unknown const& what) {
    // sysfs answers EINVAL for the speed of a netdev that is down, EOPNOTSUPP for the name of a
    // port that has none; dcbnl and ethtool answer EOPNOTSUPP where the driver knows neither.
    switch (what.error) {
        case ENOENT:
        case EINVAL:
        case EOPNOTSUPP:
        case ENODATA:
            return false;
        default:
            return true;
    }
}

void Reads::note(Unknown const& what) {
    if (is_unread(what) && std::ranges::find(noted_, what) == noted_.end()) noted_.push_back(what);
}

Unknown const* Reads::first() const {
    return noted_.empty() ? nullptr : &noted_.front();
}

std::vector<Unknown> Reads::take() {
    return std::exchange(noted_, {});
}

template <class Value>
Known<Value> FactReader::noted(Known<Value> known) const {
    if (!known) reads_->note(known.error());
    return known;
}

Known<std::string_view> FactReader::text(std::string_view path) const {
    return noted(facts_->text(path));
}

Known<std::string_view> FactReader::target(std::string_view path) const {
    return noted(facts_->target(path));
}

Known<Names> FactReader::names(std::string_view path) const {
    return noted(facts_->names(path));
}

Known<CommandFact const*> FactReader::command(std::string_view line) const {
    return noted(facts_->command(line));
}

Known<Names> FactReader::answers(std::string_view request) const {
    return noted(facts_->answers(request));
}

template <class Map>
FactReader::Found<typename Map::mapped_type> FactReader::found(Map const& map,
                                                               std::string_view pattern) const {
    if (!facts_->looked_up(pattern)) reads_->note({std::string(pattern), 0});
    Found<typename Map::mapped_type> all;
    auto const plain = pattern.substr(0, pattern.find_first_of("*?[\\"));
    for (auto at = map.lower_bound(plain); at != map.end() && at->first.starts_with(plain); ++at) {
        auto const& [name, fact] = *at;
        if (!matches(pattern, name)) continue;
        if (fact.error != 0)
            reads_->note({name, fact.error});
        else
            all.emplace_back(name, &fact);
    }
    return all;
}

FactReader::Found<Fact> FactReader::files(std::string_view pattern) const {
    return found(facts_->files, pattern);
}

FactReader::Found<Fact> FactReader::links(std::string_view pattern) const {
    return found(facts_->links, pattern);
}

FactReader::Found<FolderFact> FactReader::folders(std::string_view pattern) const {
    return found(facts_->folders, pattern);
}

FactReader::Found<CommandFact> FactReader::commands(std::string_view pattern) const {
    return found(facts_->commands, pattern);
}

}  // namespace vfmgr::checks
