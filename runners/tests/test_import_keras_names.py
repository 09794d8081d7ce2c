"""Names of parameters for the variables of a Keras model."""

import unittest

from bakeoff_import.keras_names import Names, layer_paths


class LayerPaths(unittest.TestCase):
    def changed(self, *names: str) -> list[str]:
        """The paths that are not the names themselves."""
        paths = layer_paths(names)
        self.assertEqual(len(set(paths.values())), len(set(names)))
        return [path for name, path in paths.items() if path != name]

    def test_blocks_are_cut_at_the_last_number_that_counts_them(self) -> None:
        names = [
            f"conv{stage}_block{block}_{i}_{what}"
            for stage in (2, 3)
            for block in (1, 2)
            for i in (1, 2)
            for what in ("conv", "bn")
        ]
        paths = layer_paths(["conv1_conv", "conv1_bn", *names, "predictions"])
        self.assertEqual(paths["conv1_conv"], "conv1_conv")
        self.assertEqual(paths["conv3_block2_1_bn"], "conv3_block.1.bn1")
        self.assertEqual(paths["predictions"], "predictions")

    def test_numbers_with_gaps_stay(self) -> None:
        names = [f"block_{i}_{what}" for i in (1, 3) for what in ("up", "down")]
        self.assertIn("block.3.up", self.changed(*names))

    def test_what_counts_no_blocks_stays(self) -> None:
        self.assertEqual(self.changed("dense", "dense_1", "dense_2"), [])
        self.assertEqual(self.changed("a_1_x", "a_2_x", "a_3_x"), [], "one layer each")
        self.assertEqual(self.changed("a_1_x", "a_1_y"), [], "one number")
        self.assertEqual(self.changed("a_1_x", "a_1_y", "a_01_x", "a_01_y"), [])
        self.assertEqual(self.changed("1_x", "1_y", "2_x", "2_y"), [])
        self.assertEqual(self.changed("_", "__", "a__b", "", "a_"), [])

    def test_a_path_that_is_taken_is_not_given(self) -> None:
        names = ["b1_x", "b1_y", "b2_x", "b2_y", "b.0.x"]
        self.assertEqual(self.changed(*names), [])


class VariableNames(unittest.TestCase):
    def named(self, *keys: str) -> list[str]:
        names = Names(keys)
        found = [names.name(key) for key in keys]
        self.assertEqual(len(set(found)), len(keys))
        return found

    def test_variables_are_called_after_slots(self) -> None:
        self.assertEqual(
            self.named("bn/gamma", "bn/beta", "bn/moving_mean", "bn/moving_variance"),
            ["bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"],
        )
        self.assertEqual(
            self.named("s/depthwise_kernel", "s/pointwise_kernel", "s/bias"),
            ["s.depthwise.weight", "s.pointwise.weight", "s.pointwise.bias"],
        )
        self.assertEqual(
            self.named("gru/gru_cell/kernel", "gru/gru_cell/recurrent_kernel"),
            ["gru.weight_ih_l0", "gru.weight_hh_l0"],
        )
        self.assertEqual(
            Names(["gru/gru_cell/bias"]).name("gru/gru_cell/bias", "bias_hh_l0"),
            "gru.bias_hh_l0",
        )

    def test_where_two_would_have_one_name_they_keep_their_own(self) -> None:
        self.assertEqual(
            self.named("odd/kernel", "odd/gamma"), ["odd.kernel", "odd.gamma"]
        )
        self.assertEqual(self.named("kernel", "a/kernel"), ["weight", "a.weight"])

    def test_layers_of_a_layer_are_counted_within_it(self) -> None:
        keys = [
            f"block{'_1' if block else ''}/dense_{2 * block + i + 5}/kernel"
            for block in (0, 1)
            for i in (0, 1)
        ]
        self.assertEqual(
            self.named(*keys, "dense_9/kernel"),
            [
                "block.0.dense.weight",
                "block.0.dense_1.weight",
                "block.1.dense.weight",
                "block.1.dense_1.weight",
                "dense_9.weight",
            ],
        )
        self.assertEqual(
            self.named("scale_3/variable_7", "scale_4/variable_8"),
            ["scale_3.variable", "scale_4.variable"],
        )


if __name__ == "__main__":
    unittest.main()
