// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/bundle.hpp"

#include <algorithm>
#include <array>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "vfmgr/machine/redact.hpp"

namespace vfmgr {

namespace checks {
namespace {

constexpr int form = 1;
constexpr int errno_max = 133;  // EHWPOISON, the last errno

int errno_of(std::string_view name) {
    for (int error = 1; error <= errno_max; ++error)
        if (errno_name(error) == name) return error;
    return 0;
}

// Text stays as it is: people read bundles, and tests write them.
bool is_text(std::string_view bytes) {
    auto const control = [](char byte) {
        auto const code = static_cast<unsigned char>(byte);
        return (code < 0x20 && byte != '\n' && byte != '\t') || code >= 0x7f;
    };
    return std::ranges::none_of(bytes, control);
}

std::string hex(std::string_view bytes) {
    std::string text;
    for (char const byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return text;
}

std::optional<std::string> from_hex(std::string_view text) {
    if (text.size() % 2 != 0) return std::nullopt;
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        auto const byte = parse_digits(text.substr(i, 2), {.base = 16, .digits_min = 2});
        if (!byte) return std::nullopt;
        bytes += static_cast<char>(*byte);
    }
    return bytes;
}

nlohmann::json errno_json(int error) {
    return {{"errno", errno_name(error)}};
}

nlohmann::json bytes_json(std::string const& bytes) {
    return is_text(bytes) ? nlohmann::json(bytes) : nlohmann::json{{"hex", hex(bytes)}};
}

nlohmann::json to_document(Fact const& fact) {
    return fact.error != 0 ? errno_json(fact.error) : bytes_json(fact.bytes);
}

nlohmann::json to_document(FolderFact const& fact) {
    return fact.error != 0 ? errno_json(fact.error) : nlohmann::json(fact.names);
}

nlohmann::json to_document(NetlinkFact const& fact) {
    if (fact.error != 0) return errno_json(fact.error);
    auto all = nlohmann::json::array();
    for (auto const& payload : fact.payloads) all.push_back(hex(payload));
    return all;
}

nlohmann::json to_document(CommandFact const& fact) {
    if (fact.error != 0) return errno_json(fact.error);
    return {{"exit_status", fact.exit_status},
            {"out", bytes_json(fact.out)},
            {"err", bytes_json(fact.err)}};
}

template <class T>
nlohmann::json to_document(std::map<std::string, T, std::less<>> const& facts) {
    auto document = nlohmann::json::object();
    for (auto const& [name, fact] : facts) document[name] = to_document(fact);
    return document;
}

// Calls `take` with the name and the facts of each part.
template <class Of, class Take>
void each_part(Of& facts, Take take) {
    take("files", facts.files);
    take("links", facts.links);
    take("folders", facts.folders);
    take("netlink", facts.netlink);
    take("commands", facts.commands);
}

// Reads the parts of a bundle. Keeps the first mistake only, to report it once.
class BundleReader {
  public:
    explicit BundleReader(nlohmann::json const& document) : document_(document) {}

    [[nodiscard]] std::optional<Error> const& mistake() const { return mistake_; }

    void complain(std::string const& where, std::string const& what) {
        if (!mistake_)
            mistake_ = Error{Problem::invalid_request,
                             fmt::format("the bundle's {} {}", quoted(where), what),
                             "make the bundle again: vfctl support-bundle"};
    }

    template <class T>
    void facts(char const* part, std::map<std::string, T, std::less<>>& into) {
        auto const found = document_.find(part);
        if (found == document_.end()) return;
        if (!found->is_object()) return complain(part, "must be an object");
        for (auto const& [name, value] : found->items()) {
            T fact;
            if (!read_error(value, name, fact.error)) read_fact(value, name, fact);
            into.insert_or_assign(name, std::move(fact));
        }
    }

    void texts(char const* part, std::set<std::string, std::less<>>& into) {
        std::vector<std::string> all;
        if (auto const found = document_.find(part); found != document_.end())
            read_texts(*found, part, all);
        into.insert(all.begin(), all.end());
    }

  private:
    bool read_error(nlohmann::json const& value, std::string const& where, int& error) {
        auto const found = value.is_object() ? value.find("errno") : value.end();
        if (!value.is_object() || found == value.end()) return false;
        error = found->is_string() ? errno_of(found->get_ref<std::string const&>()) : 0;
        if (error == 0) complain(where, "has an errno that Linux does not know");
        return true;
    }
    void read_fact(nlohmann::json const& value, std::string const& where, Fact& fact) {
        read_bytes(value, where, fact.bytes);
    }
    void read_fact(nlohmann::json const& value, std::string const& where, FolderFact& fact) {
        read_texts(value, where, fact.names);
        std::sort(fact.names.begin(), fact.names.end());
    }
    void read_fact(nlohmann::json const& value, std::string const& where, NetlinkFact& fact) {
        std::vector<std::string> all;
        read_texts(value, where, all);
        for (auto const& text : all) {
            auto bytes = from_hex(text);
            if (!bytes) return complain(where, "must hold hexadecimal strings");
            fact.payloads.push_back(std::move(*bytes));
        }
    }
    void read_fact(nlohmann::json const& value, std::string const& where, CommandFact& fact) {
        if (!value.is_object()) return complain(where, "must be an object");
        auto const status = value.find("exit_status");
        if (status == value.end() || !status->is_number_unsigned() ||
            status->get<std::uint64_t>() > 255)
            return complain(where, "must have an exit_status from 0 to 255");
        fact.exit_status = status->get<int>();
        read_bytes(value.value("out", nlohmann::json("")), where, fact.out);
        read_bytes(value.value("err", nlohmann::json("")), where, fact.err);
    }
    void read_bytes(nlohmann::json const& value, std::string const& where, std::string& bytes) {
        if (value.is_string()) return void(bytes = value.get<std::string>());
        auto const found = value.is_object() ? value.find("hex") : value.end();
        bool const is_hex = value.is_object() && found != value.end() && found->is_string();
        auto read = is_hex ? from_hex(found->get_ref<std::string const&>()) : std::nullopt;
        if (!read) return complain(where, "must be a string, or {\"hex\": …}, or {\"errno\": …}");
        bytes = std::move(*read);
    }
    void read_texts(nlohmann::json const& value, std::string const& where,
                    std::vector<std::string>& into) {
        bool good = value.is_array();
        for (std::size_t i = 0; good && i < value.size(); ++i) {
            good = value[i].is_string();
            if (good) into.push_back(value[i].get<std::string>());
        }
        if (!good) complain(where, "must be a list of strings");
    }

    nlohmann::json const& document_;
    std::optional<Error> mistake_;
};

// The members that are not facts.
struct Header {
    int vfmgr_bundle = 0;
    CheckedMachine machine = CheckedMachine::host;
    Provenance provenance = Provenance::live;
    std::string source;
    Time collected_at{};
};

template <class F, Of<Header> V>
void fields(F& f, V& header) {
    f.value("vfmgr_bundle", header.vfmgr_bundle);
    f.value("machine", header.machine);
    f.value("provenance", header.provenance);
    f.defaulted("source", header.source);
    f.value("collected_at", header.collected_at);
}

void check(JsonReader& reader, Header const& header) {
    for (auto const* part : {"patterns", "files", "links", "folders", "netlink", "commands"})
        reader.accept(part);
    if (reader.clean() && header.vfmgr_bundle != form)
        reader.complain("vfmgr_bundle", fmt::format("must be {}", form));
}

}  // namespace

std::string to_bundle(Facts const& facts) {
    nlohmann::json document;
    JsonWriter writer(document);
    Header const header{form, facts.machine, facts.provenance, facts.source, facts.collected_at};
    fields(writer, header);
    document["patterns"] = facts.patterns;
    each_part(facts,
              [&](char const* name, auto const& part) { document[name] = to_document(part); });
    return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<Facts> from_bundle(std::string_view text) {
    if (text.size() > bundle_bytes_max)
        return fail(Problem::limit_exceeded,
                    fmt::format("the bundle has more than {} bytes", bundle_bytes_max),
                    "make the bundle again: vfctl support-bundle");
    VFMGR_TRY(auto const document, parse_json(text));
    VFMGR_TRY(auto const header, from_json_document<Header>(document));
    Facts facts;
    facts.machine = header.machine;
    facts.provenance = header.provenance;
    facts.source = header.source;
    facts.collected_at = std::chrono::floor<std::chrono::milliseconds>(header.collected_at);
    BundleReader reader(document);
    reader.texts("patterns", facts.patterns);
    each_part(facts, [&](char const* name, auto& part) { reader.facts(name, part); });
    if (reader.mistake()) return fail(*reader.mistake());
    return facts;
}

Facts without_secrets(Facts facts) {
    // The kernel's own files are long, and only the command line can hold secrets.
    for (auto& [path, fact] : facts.files)
        if (!path.starts_with("/sys/")) fact.bytes = redact(fact.bytes);
    for (auto& [line, fact] : facts.commands) {
        fact.out = redact(fact.out);
        fact.err = redact(fact.err);
    }
    return facts;
}

}  // namespace checks

}  // namespace vfmgr
