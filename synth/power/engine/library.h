// Cells of a library as a simulation needs them: truth tables, and which table of delay or energy holds in which state.
#pragma once
#include <algorithm>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

// Values over the transition at an input and the load of an output, as Table of liberty.py.
struct Table {
    std::vector<float> slews, loads, values;

    static int interval(const std::vector<float>& points, float x) {
        int n = int(points.size());
        int at = int(std::lower_bound(points.begin(), points.end(), x) - points.begin()) - 1;
        return std::clamp(at, 0, std::max(n - 2, 0));
    }
    static float along(const std::vector<float>& points, int at, float x) {
        return points.size() == 1 ? 0.f : (x - points[at]) / (points[at + 1] - points[at]);
    }
    // Linear between points; a load beyond the last goes on as it did, and so does a transition where it is `on`: else
    // it stays at the last.
    float at(float slew, float load, bool on) const {
        if (!on) slew = std::clamp(slew, slews.front(), slews.back());
        int row = interval(slews, slew), column = interval(loads, load);
        float down = along(slews, row, slew), right = along(loads, column, load);
        int below = std::min(row + 1, int(slews.size()) - 1), beside = std::min(column + 1, int(loads.size()) - 1);
        auto line = [&](int r) {
            float a = values[r * loads.size() + column], b = values[r * loads.size() + beside];
            return a + (b - a) * right;
        };
        float near = line(row);
        return near + (line(below) - near) * down;
    }
};

struct Arc {
    int table[4];  // of a falling and a rising output (or input, of a hidden energy): energy, or delay; transition
};

struct CellType {
    std::string name;
    int inputs, outputs, clock;  // pin of a flip-flop's clock, or -1
    bool falling;                // whether its falling edge takes the input over
    float leakage;
    std::vector<float> capacitance;
    std::vector<std::string> truth;  // of each output: '0' or '1' for each state of the inputs, the first pin lowest
    std::vector<int> inverted;       // of each output: whether it is the complement of a flip-flop's state
    std::vector<Arc> delay, energy, hidden;
    std::vector<int> delay_of, energy_of;  // [output][pin][state] -> arc, or -1
    std::vector<int> hidden_of;            // [pin][state, of a flip-flop with its own bit on top] -> arc, or -1

    int states() const { return 1 << inputs; }
    int place(int output, int pin, int state) const { return (output * inputs + pin) * states() + state; }
    int hidden_place(int pin, int state) const { return pin * (states() << (clock >= 0)) + state; }
    bool value(int output, int state) const { return truth[output][state] == '1'; }

    // What an output is while a pin stands so, whatever the others do; -1 if that depends on them.
    int held(int output, int pin, bool at) const {
        int found = -1;
        for (int state = 0; state < states(); ++state) {
            if (bool(state >> pin & 1) != at) continue;
            if (found == !value(output, state)) return -1;
            found = value(output, state);
        }
        return found;
    }
};

struct Library {
    std::vector<Table> tables;
    std::vector<CellType> cells;
    float volts;
};

inline std::vector<float> read_floats(std::istream& in, int count) {
    std::vector<float> found(count);
    for (float& each : found) in >> each;
    return found;
}

inline std::vector<int> read_ints(std::istream& in, int count) {
    std::vector<int> found(count);
    for (int& each : found) in >> each;
    return found;
}

// The text that tables.py writes.
inline Library read_library(std::istream& in) {
    Library library;
    int count;
    in >> library.volts >> count;
    library.tables.resize(count);
    for (Table& table : library.tables) {
        int slews, loads;
        in >> slews >> loads;
        table.slews = read_floats(in, slews), table.loads = read_floats(in, loads);
        table.values = read_floats(in, slews * loads);
    }
    in >> count;
    library.cells.resize(count);
    for (CellType& cell : library.cells) {
        in >> cell.name >> cell.inputs >> cell.outputs >> cell.clock >> cell.falling >> cell.leakage;
        cell.capacitance = read_floats(in, cell.inputs);
        cell.truth.resize(cell.outputs);
        for (std::string& each : cell.truth) in >> each;
        cell.inverted = read_ints(in, cell.outputs);
        for (auto* arcs : {&cell.delay, &cell.energy, &cell.hidden}) {
            in >> count;
            arcs->resize(count);
            for (Arc& arc : *arcs)
                for (int& each : arc.table) in >> each;
        }
        cell.delay_of = read_ints(in, cell.outputs * cell.inputs * cell.states());
        cell.energy_of = read_ints(in, cell.outputs * cell.inputs * cell.states());
        cell.hidden_of = read_ints(in, cell.inputs * (cell.states() << (cell.clock >= 0)));
    }
    return library;
}
