// SPDX-License-Identifier: Apache-2.0
#include "service/cli/complete.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "api/types/text.hpp"
#include "service/cli/completions.hpp"
#include "service/cli/show.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {
namespace {

bool takes_value(CLI::Option const& option) {
    return option.get_items_expected_max() > 0;
}

// The options that may follow: a command's own and its parents'.
std::vector<CLI::Option const*> options_of(CLI::App const* command) {
    std::vector<CLI::Option const*> all;
    for (; command != nullptr; command = command->get_parent())
        for (auto const* option : command->get_options())
            if (option->nonpositional()) all.push_back(option);
    return all;
}

// Reads words as CLI11 does: options anywhere, then commands, then arguments.
class Walk {
  public:
    explicit Walk(CLI::App const& app) { place_.command = &app; }

    void take(std::string const& word) {
        if (pending_ != nullptr) {
            place_.given[std::exchange(pending_, nullptr)] = word;
        } else if (arguments_only_ || word.size() < 2 || word.front() != '-') {
            take_argument(word);
        } else if (word == "--") {
            arguments_only_ = true;
        } else if (word.starts_with("--")) {
            take_long(word);
        } else {
            take_short(word);
        }
    }

    [[nodiscard]] Place last(std::string const& word) {
        auto place = place_;
        place.word = word;
        if (pending_ != nullptr) {
            place.valued = pending_;
            return place;
        }
        if (!arguments_only_ && word.starts_with('-')) {
            place.is_option = true;
            auto const equals = word.find('=');
            if (equals == std::string::npos || !word.starts_with("--")) return place;
            place.valued = find(word.substr(0, equals));
            place.before = word.substr(0, equals + 1);
            place.word = word.substr(equals + 1);
            return place;
        }
        place.valued = argument();
        return place;
    }

  private:
    // `name` is "-o" or "--output".
    [[nodiscard]] CLI::Option const* find(std::string const& name) const {
        for (auto const* option : options_of(place_.command))
            if (option->check_name(name)) return option;
        return nullptr;
    }

    void take_argument(std::string const& word) {
        for (auto const* command : place_.command->get_subcommands({}))
            if (command->check_name(word)) {
                place_.command = command;
                place_.arguments = 0;
                return;
            }
        ++place_.arguments;
    }

    void take_long(std::string const& word) {
        auto const equals = word.find('=');
        auto const* const option = find(word.substr(0, equals));
        if (option == nullptr) return;
        if (equals != std::string::npos)
            place_.given[option] = word.substr(equals + 1);
        else
            expect(option);
    }

    // "-o", "-qj", "-ojson", "-qo"
    void take_short(std::string const& word) {
        for (std::size_t at = 1; at < word.size(); ++at) {
            auto const* const option = find({'-', word[at]});
            if (option == nullptr) return;
            if (takes_value(*option) && at + 1 < word.size()) {
                place_.given[option] = word.substr(at + 1);
                return;
            }
            expect(option);
        }
    }

    void expect(CLI::Option const* option) {
        if (takes_value(*option))
            pending_ = option;
        else
            place_.given[option] = "";
    }

    // The argument that the next word is.
    [[nodiscard]] CLI::Option const* argument() const {
        auto left = place_.arguments;
        for (auto const* option : place_.command->get_options()) {
            if (!option->get_positional()) continue;
            auto const words = static_cast<std::size_t>(option->get_items_expected_max());
            if (left < words) return option;
            left -= words;
        }
        return nullptr;
    }

    Place place_;
    CLI::Option const* pending_ = nullptr;  // waits for its value
    bool arguments_only_ = false;
};

// The connection is that of the options before the word.
Options options_before(Place const& place, Options options) {
    std::pair<char const*, std::string*> const members[] = {
        {"--host", &options.host},
        {"--token-file", &options.credentials.token_file},
        {"--ca-file", &options.credentials.ca_file},
        {"--fingerprint", &options.credentials.fingerprint},
        {"--client-certificate", &options.credentials.client_certificate},
        {"--client-key", &options.credentials.client_key}};
    for (auto const& [option, value] : place.given)
        for (auto const& [name, member] : members)
            if (option->check_name(name)) *member = value;
    options.quiet = true;
    return options;
}

std::vector<Completion> values(Place const& place, Session const& session) {
    auto const& option = *place.valued;
    auto const type = option.get_type_name();
    auto const kind = option.get_positional() ? option.get_name() : type.substr(0, type.find(':'));
    auto found = choices_of(type);
    for (auto& more : completions(kind, place.word, options_before(place, session.options)))
        found.push_back(std::move(more));
    return found;
}

std::vector<Completion> option_names(Place const& place) {
    std::vector<Completion> found;
    for (auto const* option : options_of(place.command)) {
        bool const repeats = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
        if (place.given.contains(option) && !repeats) continue;
        for (auto const& name : option->get_lnames())
            found.push_back({"--" + name, option->get_description()});
    }
    return found;
}

std::vector<Completion> commands(Place const& place) {
    std::vector<Completion> found;
    if (place.arguments > 0) return found;  // after a word that is no command
    for (auto const* command : place.command->get_subcommands({}))
        found.push_back({command->get_name(), command->get_description()});
    return found;
}

}  // namespace

Place place_of(CLI::App const& app, std::vector<std::string> const& words) {
    Walk walk(app);
    for (std::size_t i = 0; i + 1 < words.size(); ++i) walk.take(words[i]);
    return walk.last(words.empty() ? std::string() : words.back());
}

int complete(CLI::App const& app, Session& session, std::vector<std::string> const& words) {
    auto const place = place_of(app, words);
    auto const found = place.valued != nullptr ? values(place, session)
                       : place.is_option       ? option_names(place)
                                               : commands(place);
    std::string out;
    for (auto const& [value, description] : found) {
        if (value == files_marker)
            out += value + "\n";
        else if (value.starts_with(place.word))
            out += place.before + printable(value) +
                   (description.empty() ? "" : "\t" + printable(description)) + "\n";
    }
    write_out(out, Shown::text);
    return 0;
}

}  // namespace vfmgr
