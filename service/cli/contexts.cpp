// SPDX-License-Identifier: Apache-2.0
#include "service/cli/contexts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <ranges>
#include <utility>

#include "api/os/file.hpp"
#include "api/types/text.hpp"
#include "service/cli/connection.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t file_bytes_max = 1024 * 1024;
constexpr std::string_view unix_scheme = "unix:";

// Collects what is wrong with a file, each with its line.
class FileReader {
  public:
    FileReader(std::string file, Contexts& contexts)
        : file_(std::move(file)), contexts_(contexts) {}

    Result<void> read(std::string_view text) {
        try {
            read_root(toml::parse(text, file_));
        } catch (toml::parse_error const& error) {
            complain(error.source(), std::string(error.description()));
        }
        if (wrong_.empty()) return {};
        auto const& [line, detail] = *wrong_.begin();
        Error error{Problem::invalid_request, fmt::format("{}:{}: {}", file_, line, detail),
                    "correct the file; vfctl(1) describes it"};
        for (auto const& [at, what] : wrong_)
            error.violations.push_back({fmt::format("{}:{}", file_, at), what});
        return fail(std::move(error));
    }

  private:
    void read_root(toml::table const& root) {
        for (auto const& [key, node] : root) {
            if (key == "current")
                contexts_.current = text_of(node, "current");
            else if (key == "contexts" && node.is_table())
                read_contexts(*node.as_table());
            else
                complain(key.source(), key == "contexts"
                                           ? "contexts must be a table"
                                           : fmt::format("{} is not known", key.str()));
        }
    }

    void read_contexts(toml::table const& table) {
        for (auto const& [key, node] : table) {
            std::string const name(key.str());
            if (!is_context_name(name) || name == local_context)
                complain(key.source(),
                         fmt::format("{} can't be the name of a context", quoted(name)));
            else if (!node.is_table())
                complain(node.source(), fmt::format("contexts.{} must be a table", name));
            else
                read_context(name, *node.as_table());
        }
    }

    void read_context(std::string const& name, toml::table const& table) {
        Context context;
        context.file = file_;
        auto& with = context.credentials;
        std::map<std::string_view, std::string*> const members = {
            {"address", &context.address},
            {"ca_file", &with.ca_file},
            {"fingerprint", &with.fingerprint},
            {"token_file", &with.token_file},
            {"client_certificate_file", &with.client_certificate},
            {"client_key_file", &with.client_key}};
        for (auto const& [key, node] : table) {
            auto const path = fmt::format("contexts.{}.{}", name, key.str());
            auto const member = members.find(key.str());
            if (member == members.end()) {
                complain(key.source(), path + " is not known");
                continue;
            }
            *member->second = text_of(node, path);
            if (key.str().ends_with("_file") && !member->second->starts_with('/'))
                complain(node.source(), path + " must be a path that begins with /");
        }
        auto const address = parse_address(context.address);
        if (!address)
            complain(table.source(),
                     fmt::format("contexts.{}.address: {}", name, address.error().detail));
        else if (address->starts_with(unix_scheme) && !address->starts_with("unix:/"))
            complain(table.source(),
                     fmt::format("contexts.{}.address must have a path that begins with /", name));
        else
            context.address = *address;
        contexts_.by_name.emplace(name, std::move(context));
    }

    std::string text_of(toml::node const& node, std::string const& path) {
        auto const value = node.value_exact<std::string>();
        if (!value || value->empty()) complain(node.source(), path + " must be a string");
        return value.value_or("");
    }

    void complain(toml::source_region const& where, std::string detail) {
        wrong_.emplace(where.begin.line, std::move(detail));
    }

    std::string file_;
    Contexts& contexts_;
    std::multimap<std::uint32_t, std::string> wrong_;  // by line
};

// A file that does not exist has no text.
Result<std::string> text_of_file(std::string const& file) {
    if (file.empty()) return std::string();
    auto text = read_file(file);
    int const error = errno;
    if (!text && (error == ENOENT || error == ENOTDIR)) return std::string();
    if (text && text->size() <= file_bytes_max) return std::move(*text);
    return fail(Problem::invalid_request,
                text ? fmt::format("{} is longer than {} bytes", file, file_bytes_max)
                     : fmt::format("can't read {}: {}", file, errno_name(error)),
                "make it a readable file, or remove it");
}

}  // namespace

ContextFiles context_files() {
    ContextFiles files;
    auto const* const config = std::getenv("XDG_CONFIG_HOME");
    auto const* const home = std::getenv("HOME");
    // The specification of XDG has relative paths ignored.
    if (config != nullptr && config[0] == '/')
        files.user = std::string(config) + "/vfmgr/contexts.toml";
    else if (home != nullptr && home[0] == '/')
        files.user = std::string(home) + "/.config/vfmgr/contexts.toml";
    return files;
}

bool is_context_name(std::string_view text) {
    constexpr std::size_t bytes_max = 64;
    auto const allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    };
    return !text.empty() && text.size() <= bytes_max && text.front() != '-' &&
           std::ranges::all_of(text, allowed);
}

Result<std::string> parse_address(std::string const& text) {
    if (text.starts_with('/')) return std::string(unix_scheme) + text;
    if (text.starts_with(unix_scheme) && text.size() > unix_scheme.size()) return text;
    VFMGR_CHECK(parse_url(text));
    return text;
}

Result<void> add_contexts(Contexts& contexts, std::string const& file, std::string_view text) {
    return FileReader(file, contexts).read(text);
}

Result<Contexts> read_contexts(ContextFiles const& files) {
    Contexts contexts;
    VFMGR_TRY(auto const own, text_of_file(files.user));
    VFMGR_CHECK(add_contexts(contexts, files.user, own));
    auto const current = std::exchange(contexts.current, {});
    VFMGR_TRY(auto const common, text_of_file(files.system));
    VFMGR_CHECK(add_contexts(contexts, files.system, common));
    if (!contexts.current.empty())
        return fail(Problem::invalid_request,
                    fmt::format("{} chooses a current context for everybody", files.system),
                    "remove that line; each user chooses with: vfctl context use NAME");
    contexts.current = current;
    contexts.by_name.emplace(fleet_context, Context{fleet_address});
    return contexts;
}

Result<Context> find_context(Contexts const& contexts, std::string const& name) {
    auto const found = contexts.by_name.find(name);
    if (found != contexts.by_name.end()) return found->second;
    return fail(Problem::invalid_request, fmt::format("there is no context {}", quoted(name)),
                fmt::format("use one of {}; or give unix:PATH or https://HOST:PORT",
                            fmt::join(std::views::keys(contexts.by_name), ", ")));
}

Result<std::string> with_current(std::string_view text, std::string const& name) {
    Contexts before;
    VFMGR_CHECK(add_contexts(before, "", text));
    auto const line = fmt::format("current = \"{}\"\n", name);
    auto out = line + std::string(text);
    if (!before.current.empty()) {
        auto const where = toml::parse(text).get("current")->source();
        auto const begin_of = [text](std::size_t wanted) {
            std::size_t at = 0;
            while (--wanted > 0) at = std::min(text.find('\n', at), text.size() - 1) + 1;
            return at;
        };
        auto const begin = begin_of(where.begin.line);
        out = std::string(text.substr(0, begin)) + line +
              std::string(text.substr(begin_of(where.end.line + 1)));
    }
    Contexts after;
    before.current = name;
    if (add_contexts(after, "", out) && after == before) return out;
    return fail(Problem::unsupported, "the current context can't be changed in this file",
                fmt::format("put this line first: current = \"{}\"", name));
}

Result<void> use_context(ContextFiles const& files, std::string const& name) {
    VFMGR_TRY(auto const contexts, read_contexts(files));
    VFMGR_CHECK(find_context(contexts, name));
    if (files.user.empty())
        return fail(Problem::invalid_request, "this user has no home for contexts.toml",
                    "set HOME or XDG_CONFIG_HOME");
    VFMGR_TRY(auto const text, text_of_file(files.user));
    VFMGR_TRY(auto const changed, with_current(text, name));
    // A link stays one: its target is replaced.
    std::error_code ignored;
    auto file = std::filesystem::weakly_canonical(files.user, ignored);
    if (ignored) file = files.user;
    std::filesystem::create_directories(file.parent_path(), ignored);
    auto written = replace_file(file, changed, 0600);
    if (!written) written.error().remedy = "make the folder of that file writable";
    return written;
}

}  // namespace vfmgr
